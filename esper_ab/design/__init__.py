"""What is compared, when and by which rule: boundaries, calibration, power, pairs needed."""
