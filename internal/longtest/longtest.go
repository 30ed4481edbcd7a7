// Package longtest tells tests whether the long suites run. `go test work` leaves out what takes
// long and rarely fails; scripts/long-tests.sh runs it, as continuous integration does.
package longtest

import "os"

// Enabled reports whether the environment asks for the long suites: LORIS_LONG is set.
func Enabled() bool { return os.Getenv("LORIS_LONG") != "" }
