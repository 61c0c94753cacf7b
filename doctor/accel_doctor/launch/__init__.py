"""What ``accelerate launch`` would do here, with the source of each value; starting, supervising and stopping it."""
