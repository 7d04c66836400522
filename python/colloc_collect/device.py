# SPDX-License-Identifier: Apache-2.0
"""The driver's figures for a GPU (NVML and its GPM part).

Memory per process, and activity between two snapshots.
"""
import contextlib

MIB = 1 << 20


class NoDevice:
    """Stands in for a GPU in a dry run on the CPU."""

    name, total_bytes, driver = "cpu", 0, ""

    def memory_of_processes(self):
        return {}

    def used_bytes(self):
        return None

    def snapshot(self):
        return None

    def activity(self, first, second):
        return {}


class Nvml:
    METRICS = {
        "smact": "NVML_GPM_METRIC_SM_UTIL",
        "smocc": "NVML_GPM_METRIC_SM_OCCUPANCY",
        "tensor": "NVML_GPM_METRIC_ANY_TENSOR_UTIL",
        "dram": "NVML_GPM_METRIC_DRAM_BW_UTIL",
        "graphics": "NVML_GPM_METRIC_GRAPHICS_UTIL",
        "fp32": "NVML_GPM_METRIC_FP32_UTIL",
    }

    def __init__(self, index):
        import pynvml

        self._nvml = pynvml
        pynvml.nvmlInit()
        self._handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        self.name = self._text(pynvml.nvmlDeviceGetName(self._handle))
        self.driver = self._text(pynvml.nvmlSystemGetDriverVersion())
        self.total_bytes = pynvml.nvmlDeviceGetMemoryInfo(self._handle).total

    @staticmethod
    def _text(value):
        return value.decode() if isinstance(value, bytes) else value

    def memory_of_processes(self):
        """Bytes by pid, without processes whose memory the driver does not report."""
        processes = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        return {p.pid: p.usedGpuMemory for p in processes if p.usedGpuMemory}

    def used_bytes(self):
        return self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used

    def snapshot(self):
        """A snapshot of the activity counters; None when the GPU has no GPM."""
        power = None
        with contextlib.suppress(self._nvml.NVMLError):
            power = self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)
        try:
            sample = self._nvml.nvmlGpmSampleAlloc()
            self._nvml.nvmlGpmSampleGet(self._handle, sample)
        except self._nvml.NVMLError:
            sample = None
        return sample, power

    def activity(self, first, second):
        """Fractions between two snapshots, and the energy in joules."""
        answer = {}
        if first and second and first[0] is not None and second[0] is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                answer = self._gpm(first[0], second[0])
        if first and second and None not in (first[1], second[1]):
            answer["energy_j"] = (second[1] - first[1]) / 1000
        return answer

    def _gpm(self, first, second):
        nvml = self._nvml
        get = nvml.c_nvmlGpmMetricsGet_t()
        get.version = nvml.NVML_GPM_METRICS_GET_VERSION
        get.numMetrics = len(self.METRICS)
        get.sample1, get.sample2 = first, second
        for i, metric in enumerate(self.METRICS.values()):
            get.metrics[i].metricId = getattr(nvml, metric)
        nvml.nvmlGpmMetricsGet(get)
        values = {
            key: get.metrics[i].value / 100
            for i, key in enumerate(self.METRICS)
            if get.metrics[i].nvmlReturn == 0
        }
        for sample in (first, second):
            nvml.nvmlGpmSampleFree(sample)
        return values
