-- SPDX-License-Identifier: Apache-2.0
--
-- Wakes colloc-slurm when a job of its partitions has ended (jobcomp/lua), written by
-- `colloc slurm setup`. Its only I/O is one appended line; without it colloc-slurm sees the end at
-- its next look at the queue, within seconds.

do
    local settings = {
        @SETTINGS@
    }
    local site_log = slurm_jobcomp_log_record

    function slurm_jobcomp_log_record(record)
        if record.partition == settings.run or record.partition == settings.intake then
            local file = io.open(settings.wake_file, "a")
            if file then
                file:write("end ", string.format("%d", record.job_id or record.jobid or 0), "\n")
                file:close()
            end
        end
        return site_log and site_log(record) or slurm.SUCCESS
    end
end
