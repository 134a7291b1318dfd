"""Simulated studies with a known truth, judged by the suite's own functions: what is promised, what came."""
