package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/loris-ml/loris/internal/attack/restarts"
)

// systemCommands are those that need Linux.
func systemCommands() map[string]command {
	return map[string]command{"restarts": runRestarts, "child": child}
}

// ownMounts is in the environment of a process that has mounts of its own.
const ownMounts = "LORIS_ATTACK_OWN_MOUNTS"

// runRestarts starts a process again and again. As root it goes on in a process with mounts of its
// own, where a small disk can be filled.
func runRestarts(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("restarts", flag.ExitOnError)
	o := restarts.Options{Package: "aoti/testdata/bounds.pt2"}
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of what happens")
	flags.DurationVar(&o.Time, "time", time.Minute, "how long")
	flags.Parse(args)
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if os.Getuid() == 0 && os.Getenv(ownMounts) == "" {
		cmd := exec.CommandContext(ctx, exe, os.Args[1:]...)
		cmd.Env = append(os.Environ(), ownMounts+"=1")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		if cmd.Start() == nil {
			return cmd.Wait()
		}
	}
	if o.Dir, err = os.MkdirTemp("", "restarts"); err != nil {
		return err
	}
	defer os.RemoveAll(o.Dir)
	if os.Getenv(ownMounts) != "" {
		if err = restarts.OwnDisk(o.Dir); err == nil {
			o.Room = true
			defer syscall.Unmount(o.Dir, 0)
		}
	}
	if !o.Room {
		fmt.Println("full disks are not tried: that takes root, and mounts of one's own", err)
	}
	o.Command = func(ctx context.Context, c restarts.Child) *exec.Cmd {
		return exec.CommandContext(ctx, exe, append([]string{"child"}, c.Strings()...)...)
	}
	rows, err := restarts.Run(ctx, o)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "what happens\tstarts\tkilled\tended for want of memory\tsteps\tsaved\tpackages loaded\tnumbers right\terrors of the system\ttimes set, or stopped\t")
	for _, r := range rows {
		fmt.Fprintf(table, "%v\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", r.Fault, r.Starts, r.Killed, r.Ended, r.Steps, r.Saves, r.Loads, r.Numbers, r.Errors, r.Times)
	}
	return errors.Join(err, table.Flush())
}

// child is a process that runRestarts starts.
func child(ctx context.Context, args []string) error {
	c, err := restarts.ParseChild(args)
	if err != nil {
		return err
	}
	return c.Run(ctx, os.Stdout)
}
