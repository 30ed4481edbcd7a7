package main

import (
	"testing"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/cmd/loris/internal/commandtest"
)

func invoke(t *testing.T, stdin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	return commandtest.Invoke(t, newRoot(), stdin, args...)
}

func succeed(t *testing.T, args ...string) string {
	t.Helper()
	return commandtest.Succeed(t, newRoot(), args...)
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run"}, "loris: accepts 1 arg(s), received 0 (see loris run --help)"},
		{[]string{"run", "a.lir", "--speed"}, "loris: unknown flag: --speed (see loris run --help)"},
		{[]string{"run", "a.lir", "--seed", "x"}, `loris: invalid argument "x" for "--seed" flag: strconv.ParseUint: parsing "x": invalid syntax (see loris run --help)`},
	} {
		code, out, errOut := invoke(t, "", c.args...)
		if code != command.ExitUsage || out != "" || errOut != c.want+"\n" {
			t.Errorf("%v: exit code %d, output %q, error\n%swant\n%s", c.args, code, out, errOut, c.want)
		}
	}
}

// The program without them lists the same commands with the same words.
func TestAbsentCommandsAreThese(t *testing.T) {
	have := map[string]string{}
	for _, c := range newRoot().Commands() {
		have[c.Name()] = c.Short
	}
	absent := command.Absent()
	if got := len(newRest().Commands); got != len(absent) {
		t.Errorf("%d commands, the other program knows of %d", got, len(absent))
	}
	for _, c := range absent {
		if have[c.Name()] != c.Short {
			t.Errorf("%s is %q, here %q", c.Name(), c.Short, have[c.Name()])
		}
	}
}
