// Command serve puts load on `loris serve` and on the servers beside it, on one machine.
//
//	go run ./bench/serve compare --models DIR --peers DIR    # beside Triton, MLServer and mosec
//	go run ./bench/serve table FILE…                         # what compare --json has written, as Markdown
//	go run ./bench/serve cost --models DIR                   # what a request costs beyond TCP and the model
//	go run ./bench/serve swap --models DIR                   # weights are replaced under load
//	go run ./bench/serve reload --models DIR                 # the model is loaded anew under load
//	go run ./bench/serve idle --models DIR                   # 10,000 connections that are open
//	go run ./bench/serve soak --models DIR --time 1h         # what the server holds as time goes on
//	go run ./bench/serve start --models DIR                  # from the start of the process to an answer
//	go run ./bench/serve chaos --time 10m                    # load, changes, clients that go, restarts
//
// peers/models.py compiles the models, peers/setup.sh makes the environments of the peers.
//
// All servers of a model are started, and all but the one that is measured are stopped. The same
// requests, of one row, go to each: over REST with binary tensors and over gRPC where it speaks
// these, MLServer over gRPC alone, mosec by the bytes of its tensors. Every answer is compared with
// PyTorch's. A closed loop has some workers that send one request after another; the open loop sends
// at half the highest rate that a peer had, and times count from when a request was due. Models run
// on as many threads as --threads says, one by default, on as many instances as --instances says.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loris-ml/loris/bench/internal/tool"
)

// modes are the first arguments.
var modes = map[string]func(context.Context, []string) error{
	"bare": bare, "chaos": chaos, "compare": compare, "cost": cost, "echo": echo, "idle": idle, "reload": reload, "soak": soak, "start": start, "swap": swap, "table": table,
}

func main() {
	tool.Main("serve", func(args []string) ([]string, error) {
		if len(args) == 0 || modes[args[0]] == nil {
			return nil, fmt.Errorf("the first argument is one of %s", strings.Join(slices.Sorted(maps.Keys(modes)), ", "))
		}
		return args, nil
	}, func(ctx context.Context, args []string) error {
		if err := modes[args[0]](ctx, args[1:]); !errors.Is(err, flag.ErrHelp) {
			return err
		}
		return nil
	})
}

// scripts are what the peers run.
//
//go:embed peers/aoti.py peers/triton_model.py peers/mlserver_model.py peers/mosec_server.py
var scripts embed.FS

// flags adds those that all modes have.
func (c *config) flags(f *flag.FlagSet) {
	f.StringVar(&c.models, "models", "", "the folder that peers/models.py has made")
	f.StringVar(&c.peers, "peers", "", "the folder that peers/setup.sh has made")
	f.StringVar(&c.loris, "loris", "", "the loris command; it is built if there is none")
	f.IntVar(&c.threads, "threads", 1, "threads of a run of the model in each server")
	f.IntVar(&c.instances, "instances", 1, "instances of the model in each server")
}

// prepare makes a folder for the run and builds what is not given.
func (c *config) prepare(ctx context.Context) (err error) {
	if c.work, err = os.MkdirTemp("", "bench-serve-"); err != nil {
		return err
	}
	c.scripts = filepath.Join(c.work, "peers")
	if err := os.CopyFS(c.work, scripts); err != nil {
		return err
	}
	for _, path := range []*string{&c.models, &c.peers, &c.loris} {
		if *path != "" {
			if *path, err = filepath.Abs(*path); err != nil {
				return err
			}
		}
	}
	if c.loris == "" {
		c.loris = filepath.Join(c.work, "loris.bin")
		build := exec.CommandContext(ctx, "go", "build", "-o", c.loris, "github.com/loris-ml/loris/cmd/loris/full")
		build.Stderr = os.Stderr
		err = build.Run()
	}
	return err
}

func (c *config) clean() { _ = os.RemoveAll(c.work) } // a temporary folder
