"""Why a function has several programs, and what to write so that it need not."""
