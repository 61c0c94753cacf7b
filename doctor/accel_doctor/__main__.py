"""``python -m accel_doctor``."""

import sys

from accel_doctor.main import main

sys.exit(main())
