"""From records to numbers: windows, samples and counters become a run."""
