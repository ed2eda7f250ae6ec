"""What rewritten calls do: functions of the user, builtins, ``print``, items of lists."""
