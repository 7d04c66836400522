-- SPDX-License-Identifier: Apache-2.0
--
-- colloc's first tier under Slurm (cli_filter/lua), written by `colloc slurm setup`: estimates
-- without any daemon. It runs in sbatch as the user. When a script has #COLLOC lines with a model
-- summary or a size, it asks `colloc estimate` how much GPU memory the training needs, and requests
-- that share of a GPU, in shards; Slurm chooses the GPU. For example, with 80 shards of a GPU with 40 GiB:
--
--     #COLLOC --summary=resnet50.txt --batch=128     8.6 GiB: --gres=shard:18
--
-- A request for several GPUs stays as it is, and so does a job whose memory is not known.
-- Users can go round it, which costs them a whole GPU at most: it is a help, not a limit.

do
    local settings = {
        @SETTINGS@
    }
    local site_submit = slurm_cli_pre_submit
    local site_defaults, site_after = slurm_cli_setup_defaults, slurm_cli_post_submit

    -- The #COLLOC lines of a script as a task file of their own, or nil when they say nothing from
    -- which its memory follows. Its #SBATCH lines are Slurm's business.
    local function read_directives(path)
        local lines, file = {"#!/bin/sh"}, io.open(path, "r")
        if not file then
            return nil
        end
        for line in file:lines() do
            if line:find("^#COLLOC%s") then
                lines[#lines + 1] = line
            elseif line:find("^%s*[^%s#]") then
                break
            end
        end
        file:close()
        local text = table.concat(lines, "\n") .. "\ntrue\n"
        local says_memory = text:find("--summary", 1, true) or text:find("--model", 1, true)
            or text:find("--memory", 1, true)
        return says_memory and text or nil
    end

    local function quote(word)
        return "'" .. word:gsub("'", "'\\''") .. "'"
    end

    -- The MiB to reserve, 0 when unknown; nil after a mistake, which colloc has printed.
    local function estimate(directives)
        local path = os.tmpname()
        local file = io.open(path, "w")
        file:write(directives)
        file:close()
        local pipe = io.popen(quote(settings.colloc) .. " estimate --json " .. quote(path)
            .. "; echo status=$?")
        local answer = pipe:read("*a")
        pipe:close()
        os.remove(path)
        local status = tonumber(answer:match("status=(%d+)%s*$"))
        if status == 126 or status == 127 then
            return 0
        elseif status ~= 0 then
            return nil
        end
        return tonumber(answer:match('"reserve_mib":%s*([%d.]+)')) or 0
    end

    local function is_one_gpu(options)
        local gres = options["gres"] or ""
        local of_job = options["gpus"] or options["gpus-per-node"] or options["gpus-per-task"]
        return not of_job and (gres == "" or gres:find("^gres[:/]?gpu:?1?$") or gres:find("^gpu:?1?$"))
    end

    local function set_shards(options)
        local script = options["type"] == "sbatch" and options.argv and (options.argv[1] or options.argv[0])
        local directives = script and is_one_gpu(options) and read_directives(script)
        local mib = directives and estimate(directives) or (not directives and 0)
        if not mib then
            return slurm.ERROR
        elseif mib > settings.gpu_memory_mib then
            slurm.log_error("colloc: the job needs %.0f MiB of GPU memory, a GPU has %.0f MiB", mib,
                settings.gpu_memory_mib)
            return slurm.ERROR
        elseif mib > 0 then
            local shards = math.ceil(mib / settings.gpu_memory_mib * settings.shards)
            options["gres"] = string.format("shard:%d", shards)
        end
        return slurm.SUCCESS
    end

    function slurm_cli_pre_submit(options, offset)
        local code = site_submit and site_submit(options, offset) or slurm.SUCCESS
        if code == slurm.SUCCESS then
            code = set_shards(options)
        end
        return code
    end

    -- Slurm wants all three functions.
    slurm_cli_setup_defaults = site_defaults or function()
        return slurm.SUCCESS
    end
    slurm_cli_post_submit = site_after or function()
        return slurm.SUCCESS
    end
end
