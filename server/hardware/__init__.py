"""Devices and what they can run: probes, NVML, the doctor."""
