-- SPDX-License-Identifier: Apache-2.0
--
-- colloc's guard inside slurmctld (job_submit/lua), written by `colloc slurm setup`.
--
-- Users submit to an intake partition, which is DOWN: Slurm queues their jobs there with priority
-- and limits, and never starts them. colloc-slurm decides which GPUs a job shares, and moves it to
-- the run partition with a node and shards of those GPUs. The guard keeps users from doing that
-- themselves, checks #COLLOC lines, and appends a line to a file that colloc-slurm watches.
--
-- A request for GPUs becomes a note, because Slurm before 23.02.6 merges the shards of a later
-- change into it instead of replacing it: --gres=gpu:2 is taken out of the request, and its
-- admin_comment says "colloc want=2", which colloc-slurm reads: 2 on each node. Of --gpus=4, which
-- are those of all nodes together, it says "colloc total=4".
--
-- Contract:
--   1. A change by root, SlurmUser or another administrator below is not refused, nor is their
--      submission to the run partition.
--   2. Jobs of other partitions pass unchanged; only an empty TresPerNode is refused for them, too:
--      for a job with shards it crashes slurmctld 22.05 at the next scontrol release.
--   3. slurmctld waits for this code, so its only I/O is one appended line per submission, and its
--      time grows with the size of a script, not faster: patterns with several repetitions get short
--      texts only.
--   4. A script of the site that defines these functions before goes on to be called.

do
    local settings = {
        @SETTINGS@
    }
    -- Options of #COLLOC lines: {kind, smallest, largest} or {"choice", "a", "b"}.
    local options = {
        @OPTIONS@
    }

    local REFUSED = slurm.ESLURM_ACCESS_DENIED or slurm.ERROR
    local INVALID = slurm.ERROR
    local UNSET = 0xfffffffe -- NO_VAL: the request does not change this number
    local RELEASED = 0xffffffff -- INFINITE: scontrol release
    local UNSET_16 = 0xfffe
    local WAKE_FILE_MAX = 1048576 -- bytes; chosen: then it is begun anew
    local DIRECTIVES_MAX = 16384 -- bytes of #COLLOC lines; chosen: a hundred long ones
    local VALUE_MAX = 64 -- bytes; chosen: longer than any number, size, time or choice

    local function refuse(code, ...)
        slurm.log_user("%s", "colloc: " .. string.format(...)) -- it formats its text
        return code
    end

    -- ---- the wake file ----

    -- Slurm has no number for a job before it is accepted: then the line says 0.
    local function wake(event, job_id)
        local file = io.open(settings.wake_file, "a")
        if file and (file:seek("end") or 0) > WAKE_FILE_MAX then
            file:close()
            file = io.open(settings.wake_file, "w")
        end
        if file then
            file:write(event, " ", string.format("%d", job_id or 0), "\n")
            file:close()
        end
    end

    -- ---- #COLLOC lines ----

    -- Words as a shell splits them; nil and a message when a quote is not closed.
    local function split_words(line)
        local words, word, quote, i = {}, nil, nil, 1
        while i <= #line do
            local c = line:sub(i, i)
            if c == "\\" and quote ~= "'" then
                i = i + 1
                if i > #line then
                    return nil, "a backslash at the end of the line"
                end
                word = (word or "") .. line:sub(i, i)
            elseif quote then
                if c == quote then
                    quote = nil
                else
                    word = word .. c
                end
            elseif c == "'" or c == '"' then
                quote, word = c, word or ""
            elseif c == "#" and not word then
                break
            elseif c:find("%s") then
                words[#words + 1], word = word, nil
            else
                word = (word or "") .. c
            end
            i = i + 1
        end
        words[#words + 1] = word
        if quote then
            return nil, "an unclosed quote"
        end
        return words
    end

    local checks = {}
    function checks.integer(value, spec)
        local number = value:find("^%-?%d+$") and tonumber(value)
        if not number or number < spec[2] or number > spec[3] then
            return string.format("not a whole number from %.0f to %.0f", spec[2], spec[3])
        end
    end
    function checks.share(value)
        local number = tonumber(value)
        if not number or not (number >= 0 and number <= 1) then
            return "not a number from 0 to 1"
        end
    end
    function checks.size(value, spec)
        local number, unit = value:match("^(%d+%.?%d*)%s*(%a*)$")
        if not number or (unit ~= "" and not unit:find("^[KMGTkmgt]?i?[Bb]?$")) then
            return "not a size such as 12GiB or 900MiB"
        elseif unit == "" and spec[2] then
            return "without a unit: write 12GiB"
        end
    end
    function checks.duration(value)
        if not value:find("^%d") or value:find("[^%d%a.:%-]") then
            return "not a time such as 90s, 8h30m or 1-12:00:00"
        end
    end
    function checks.choice(value, spec)
        for i = 2, #spec do
            if value == spec[i] then
                return
            end
        end
        return "not one of " .. table.concat(spec, ", ", 2)
    end
    function checks.flag(value)
        local known = " no yes false true 0 1 off on "
        if value:find(" ") or not known:find(" " .. value:lower() .. " ", 1, true) then
            return "not yes or no"
        end
    end
    function checks.text(value, spec)
        if #value > spec[2] then
            return string.format("longer than %d bytes", spec[2])
        end
    end

    -- The option in words[i]: how it is written, its specification, its value, the next i.
    local function next_option(words, i)
        local word, name, value = words[i], nil, nil
        if word:sub(1, 2) == "--" then
            name, value = word:match("^(%-%-[^=]+)=(.*)$")
            name = name or word
        else
            name = word:sub(1, 1) == "-" and word:sub(1, 2) or word
            value = name ~= word and word:sub(3) or nil
        end
        local spec = name:sub(1, 1) == "-" and options[(name:gsub("^%-%-", ""))]
        if spec and spec[1] == "flag" then
            value = value or "yes"
        elseif spec and not value then
            i = i + 1
            value = words[i]
        end
        return name, spec, value, i + 1
    end

    local function check_line(line)
        local words, mistake = split_words(line)
        if not words then
            return mistake
        end
        local i = 1
        while i <= #words do
            local name, spec, value, after = next_option(words, i)
            if not spec then
                return string.format("unknown option %.80s", name)
            elseif not value then
                return string.format("%s needs a value", name)
            end
            if spec[1] ~= "text" and #value > VALUE_MAX then
                return string.format("%s=%.20s...: longer than %d bytes", name, value, VALUE_MAX)
            end
            mistake = checks[spec[1]](value, spec)
            if mistake then
                return string.format("%s=%.80s: %s", name, value, mistake)
            end
            i = after
        end
    end

    -- Where the line of the first command begins; behind the script if it has none.
    local function find_command(script)
        return ("\n" .. script):find("\n[ \t\r\f\v]*[^%s#]") or #script + 1
    end

    local function check_directive(rest, is_late, bytes)
        if is_late then
            return "#COLLOC lines must stand before the first command"
        elseif bytes > DIRECTIVES_MAX then
            return string.format("more than %d bytes of #COLLOC lines", DIRECTIVES_MAX)
        end
        return check_line(rest)
    end

    -- The first mistake in the #COLLOC lines of a script, with its line, or nil.
    local function check_script(script)
        local command, text = find_command(script), "\n" .. script .. "\n"
        local at, bytes = text:find("\n#COLLOC", 1, true), 0
        while at do
            local line = text:match("^[^\n]*", at + 1):gsub("\r$", "")
            local rest = line == "#COLLOC" and "" or line:match("^#COLLOC[ \t](.*)$")
            bytes = bytes + #line
            local mistake = rest and check_directive(rest, at >= command, bytes)
            if mistake then
                local _, before = script:sub(1, at - 1):gsub("\n", "")
                return string.format("line %d: %s", before + 1, mistake)
            end
            at = text:find("\n#COLLOC", at + 1, true)
        end
    end

    -- ---- options of the SPANK plugin ----

    -- What `sbatch --colloc-memory=12GiB` and the like have put into the job's environment becomes
    -- a #COLLOC line behind those of the script, so that it is checked and read as they are, and is
    -- stronger. Returns the script, or nil and a mistake.
    local function add_plugin_options(script, environment)
        local words = {}
        for _, name in ipairs({"memory", "summary", "sharing"}) do
            local value = (environment or {})["_SLURM_SPANK_OPTION_colloc_colloc_" .. name]
            if value and value:find("[%c\"\\]") then
                return nil, string.format("--colloc-%s: quotes and backslashes are refused", name)
            elseif value then
                words[#words + 1] = string.format('--%s="%s"', name, value)
            end
        end
        if #words == 0 then
            return script
        end
        local at = find_command(script)
        local line = "#COLLOC " .. table.concat(words, " ") .. "\n"
        local before = script:sub(1, at - 1)
        if before:sub(-1) ~= "\n" and before ~= "" then
            before = before .. "\n"
        end
        return before .. line .. script:sub(at)
    end

    -- ---- requests ----

    -- Whether a list of partitions names the intake, the run partition, and how many it names.
    local function find_partitions(list)
        local intake, run, count = false, false, 0
        for name in (list or ""):gmatch("[^,%s]+") do
            count = count + 1
            intake = intake or name == settings.intake
            run = run or name == settings.run
        end
        return intake, run, count
    end

    local function default_partition(partitions)
        for name, partition in pairs(partitions or {}) do
            if partition.flag_default == 1 then
                return name
            end
        end
    end

    local tres_fields = {"tres_per_node", "tres_per_job", "tres_per_socket", "tres_per_task"}

    -- Slurm 23.11 and later write --cpus-per-task into tres_per_task, too.
    local not_gres = {cpu = true, mem = true}

    -- "gres:gpu:a100:2" as "gpu" and "a100:2".
    local function split_item(item)
        return item:gsub("^gres[:/]", ""):match("^([^:=]+)[:=]?(.*)$")
    end

    -- GPUs in "gres:gpu:2,cpu=4", the rest of the text, and a reason why it cannot be served.
    local function count_gpus(text)
        local count, rest = 0, {}
        for item in text:gmatch("[^,]+") do
            local name, kind = split_item(item)
            if not_gres[name] then
                rest[#rest + 1] = item
            elseif name == "gpu" and not kind:find("^%d*$") then
                return nil, nil, "colloc chooses the GPU: ask for gpu:N without a type"
            elseif name == "gpu" then
                count = count + (tonumber(kind) or 1)
            elseif name == "shard" or name == "mps" then
                return nil, nil, "colloc chooses the GPU and its share: ask for gpu:N or nothing"
            elseif name ~= "none" then
                return nil, nil, "only GPUs can be asked for here"
            end
        end
        return count, table.concat(rest, ",")
    end

    -- Takes the GPUs out of the request. Returns a note of their numbers, or nil and a reason.
    local function take_gpus(job)
        local note, rests = "", {}
        for _, field in ipairs(tres_fields) do
            local number, rest, reason = count_gpus(job[field] or "")
            if reason then
                return nil, string.format("'%s': %s", job[field], reason)
            elseif number > 0 and (field == "tres_per_task" or field == "tres_per_socket") then
                return nil, "ask for GPUs by --gres=gpu:N or --gpus=N"
            end
            if number > 0 then
                local key = field == "tres_per_node" and "want" or "total"
                note = note .. string.format(" %s=%d", key, number)
            end
            rests[field] = rest
        end
        if (job.cpus_per_tres or "") ~= "" or (job.mem_per_tres or "") ~= "" then
            return nil, "CPUs and memory cannot be asked for by GPU: use --cpus-per-task and --mem"
        end
        for field, rest in pairs(rests) do
            if job[field] and job[field] ~= rest then
                job[field] = rest
            end
        end
        return note ~= "" and "colloc" .. note or ""
    end

    -- Does a change ask for GPUs, or for none any more?
    local function changes_gres(text)
        for item in (text or ""):gmatch("[^,]+") do
            if not not_gres[split_item(item)] then
                return true
            end
        end
        return text == ""
    end

    local function take_job(job)
        local note, reason = take_gpus(job)
        local mistake = nil
        if job.script then
            local script, unusable = add_plugin_options(job.script, job.environment)
            mistake = unusable or check_script(script)
            if script ~= job.script and not mistake then
                job.script = script
            end
        end
        if reason or mistake then
            return refuse(INVALID, "%s", reason or mistake)
        end
        job.admin_comment = note
        -- A job that ran out of GPU memory is run again; --no-requeue (0) stays.
        if job.requeue == UNSET_16 then
            job.requeue = 1
        end
        wake("submit", 0)
        return slurm.SUCCESS
    end

    local function check_submission(job, partitions, is_administrator)
        local given = job.partition ~= "" and job.partition
        local intake, run, count = find_partitions(given or default_partition(partitions))
        if run and not is_administrator then
            return refuse(REFUSED, "partition %s is for jobs that colloc has placed: submit to %s",
                settings.run, settings.intake)
        elseif intake and count > 1 then
            return refuse(REFUSED, "partition %s cannot be combined with others in a list",
                settings.intake)
        end
        return intake and take_job(job) or slurm.SUCCESS
    end

    -- What decides where and when a job runs. Holding and releasing in the intake starts nothing.
    local function changes_placement(job, in_intake)
        local priority = job.priority or UNSET
        if priority ~= UNSET and not (in_intake and (priority == 0 or priority == RELEASED)) then
            return "priority"
        end
        for _, field in ipairs({"partition", "req_nodes", "features"}) do
            if job[field] ~= nil then
                return field
            end
        end
        for _, field in ipairs(tres_fields) do
            if changes_gres(job[field]) then
                return field
            end
        end
    end

    local function check_change(job, record)
        for _, field in ipairs(tres_fields) do
            if job[field] == "" then
                return refuse(REFUSED, "an empty %s is refused", field)
            end
        end
        local to_intake, to_run = find_partitions(job.partition)
        local in_intake, in_run = find_partitions(record.partition)
        if not in_intake and not in_run and (to_intake or to_run) then
            return refuse(REFUSED, "a job cannot be moved to partition %s: submit it to %s",
                job.partition, settings.intake)
        end
        local field = (in_intake or in_run) and changes_placement(job, in_intake)
        if field then
            return refuse(REFUSED, "%s: only colloc and administrators change where a job of %s runs",
                field, record.partition)
        end
        return slurm.SUCCESS
    end

    -- What `decide` returns; an error in it refuses the request instead of letting it pass.
    local function guarded(decide, ...)
        local is_decided, code = pcall(decide, ...)
        if is_decided then
            return code
        end
        slurm.log_error("%s", "colloc: job_submit.lua: " .. tostring(code))
        return refuse(slurm.ERROR, "job_submit.lua has met an error, which slurmctld's log names")
    end

    local site_submit, site_modify = slurm_job_submit, slurm_job_modify

    local function decide_submission(job, partitions, user_id)
        local code = slurm.SUCCESS
        if site_submit then
            code = site_submit(job, partitions, user_id) or slurm.SUCCESS
        end
        if code == slurm.SUCCESS then
            code = check_submission(job, partitions, settings.administrators[user_id])
        end
        return code
    end

    local function decide_change(job, record, partitions, user_id)
        local code = slurm.SUCCESS
        if not settings.administrators[user_id] then
            code = check_change(job, record)
        end
        if code == slurm.SUCCESS and site_modify then
            code = site_modify(job, record, partitions, user_id) or slurm.SUCCESS
        end
        return code
    end

    function slurm_job_submit(...)
        return guarded(decide_submission, ...)
    end

    function slurm_job_modify(...)
        return guarded(decide_change, ...)
    end
end
