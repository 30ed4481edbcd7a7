//go:build unix

package process

import (
	"os"
	"os/exec"
	"syscall"
)

// terminate asks a process to end.
const terminate = syscall.SIGTERM

// group makes a process and what it starts a group, which is ended as a whole.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// pause stops all threads of a process and of those it started.
func pause(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGSTOP) }

func resume(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGCONT) }
