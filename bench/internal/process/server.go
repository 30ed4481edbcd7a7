package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// Server is a process that answers over the network. Like a Process it and what it starts can be
// stopped while others are measured.
type Server struct {
	Name string

	cmd    *exec.Cmd
	output tail
	ended  chan struct{} // closed when it has
}

// StartServer runs a command line in a folder and waits until ready returns nil. The process ends with
// ctx.
func StartServer(ctx context.Context, name, dir string, line, env []string, ready func(context.Context) error) (*Server, error) {
	s := &Server{Name: name, cmd: exec.CommandContext(ctx, line[0], line[1:]...), ended: make(chan struct{})}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = dir, env, &s.output, &s.output
	group(s.cmd)
	s.cmd.WaitDelay = time.Second
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		_ = s.cmd.Wait() // its state says how it ended
		close(s.ended)
	}()
	for {
		err := ready(ctx)
		if err == nil {
			return s, nil
		}
		select {
		case <-s.ended:
			return nil, fmt.Errorf("%s ended: %v: %s", name, s.cmd.ProcessState, s.output)
		case <-ctx.Done():
			return nil, fmt.Errorf("%s is not ready: %w", name, errors.Join(ctx.Err(), err))
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Pid returns the number of the process.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Pause stops all its threads, and Resume lets them go on.
func (s *Server) Pause() error { return pause(s.cmd.Process) }

// Resume undoes Pause.
func (s *Server) Resume() error { return resume(s.cmd.Process) }

// Terminate asks the process to end and waits for that, as long as ctx allows; then it and what it
// started are killed.
func (s *Server) Terminate(ctx context.Context) error {
	_ = resume(s.cmd.Process)
	_ = s.cmd.Process.Signal(terminate) // one that has ended gets none
	select {
	case <-s.ended:
	case <-ctx.Done():
		_ = s.cmd.Cancel()
		<-s.ended
		return fmt.Errorf("%s did not end: %w", s.Name, ctx.Err())
	}
	if state := s.cmd.ProcessState; !state.Success() {
		return fmt.Errorf("%s ended with %v: %s", s.Name, state, s.output)
	}
	return nil
}

// Kill ends the process and what it started at once.
func (s *Server) Kill() {
	select {
	case <-s.ended:
		return
	default:
	}
	_ = s.cmd.Cancel()
	<-s.ended
}
