"""Has this LLM agent drifted, and are the monitors that watch it still connected?"""
