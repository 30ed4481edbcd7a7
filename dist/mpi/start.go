//go:build linux && (amd64 || arm64)

package mpi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"github.com/loris-ml/loris/dist"
)

func init() { dist.Register(start) }

// begun says that MPI has been started in this process, which it can be once.
var begun sync.Once

// start starts MPI and the control channel. ctx bounds the life of both.
func start(ctx context.Context, l dist.Launch) (dist.Engine, error) {
	first := false
	begun.Do(func() { first = true })
	if !first {
		return nil, fmt.Errorf("MPI can be started once in a process")
	}
	late := fmt.Errorf("not all ranks came within %v: %w", l.Limit, context.DeadlineExceeded)
	limited, cancel := context.WithTimeoutCause(ctx, l.Limit, late)
	defer cancel()
	var server *pmi // of rank 0, if there is one
	if l.Address != "" {
		var err error
		if server, err = bootstrap(ctx, limited, l); err != nil {
			return nil, err
		}
	}
	before := currentHandlers()
	lib, err := open()
	if err != nil {
		return nil, err
	}
	if l.Address != "" && lib.name == "Open MPI" {
		return nil, fmt.Errorf("%s is Open MPI, which starts under its own mpiexec or srun --mpi=pmix only: use that, or MPICH", lib.path)
	}
	if underOpenMPI() && lib.name != "Open MPI" { // it would end the process in MPI_Init
		return nil, fmt.Errorf("%s (%s) is started by mpiexec of Open MPI: it is not the library of the launcher; set LORIS_MPI to that one", lib.path, lib.version())
	}
	if err := before.restore(); err != nil {
		return nil, err
	}
	if err := initialise(limited, lib); err != nil {
		if server != nil {
			err = fmt.Errorf("%w; %s", err, server.missing())
		}
		return nil, err
	}
	if err := before.restore(); err != nil {
		return nil, err
	}
	// Until the channel is there nobody finds a rank that dies, and only ctx ends the waits.
	e, err := newEngine(lib, lib.world, &control{ended: make(chan struct{})})
	if err != nil {
		return nil, err
	}
	e.alone = l.Address != ""
	if e.size != l.Size || e.rank != l.Rank {
		return nil, fmt.Errorf("%s (%s) says that this is rank %d of %d: it is not the library of the launcher; set LORIS_MPI to that one", lib.path, lib.version(), e.rank, e.size)
	}
	if e.control, err = joinControl(ctx, limited, e, l); err != nil {
		return nil, err
	}
	// The wait for MPI_Init, which is long on a busy machine, has had the limit above.
	again, done := context.WithTimeoutCause(ctx, l.Limit, late)
	defer done()
	return e, e.makeLane(again)
}

// initialise starts MPI, which blocks until all ranks have come and cannot be given up: where ctx ends
// first the process can only end.
func initialise(ctx context.Context, lib *library) error {
	done := make(chan error, 1)
	go func() { done <- lib.init() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("MPI_Init of %s: %w", lib.path, context.Cause(ctx))
	}
}

// bootstrap makes rank 0 serve PMI, and has MPI find the connection to it. The connection belongs to C
// from then on.
func bootstrap(ctx, limited context.Context, l dist.Launch) (server *pmi, err error) {
	if l.Rank == 0 {
		ln, err := net.Listen("tcp", l.Address)
		if err != nil {
			return nil, fmt.Errorf("listen for the other ranks (LORIS_PORT sets another port): %w", err)
		}
		server = servePMI(ctx, ln, l.Size, l.Token)
	}
	return server, connect(limited, l)
}

// connect gives MPI this process's connection to the server.
func connect(limited context.Context, l dist.Launch) error {
	conn, err := dial(limited, l.Address)
	if err != nil {
		return err
	}
	if _, err := conn.Write([]byte(greeting(l.Token, l.Rank))); err != nil {
		return err
	}
	f, err := conn.(*net.TCPConn).File()
	if err != nil {
		return err
	}
	conn.Close()
	defer f.Close()
	// Fd makes it block, as C expects; the copy is closed by nobody here.
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return err
	}
	syscall.CloseOnExec(fd)
	for name, value := range map[string]int{"PMI_FD": fd, "PMI_RANK": l.Rank, "PMI_SIZE": l.Size} {
		if err := os.Setenv(name, strconv.Itoa(value)); err != nil {
			return err
		}
	}
	return nil
}

// joinControl makes rank 0 serve the control channel and all join it. Where it is, and its token, they
// get by MPI.
func joinControl(ctx, limited context.Context, e *engine, l dist.Launch) (*control, error) {
	type place struct{ Host, Addr, Token string }
	const room = 1024
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	mine := place{Host: host}
	if e.rank == 0 {
		ln, err := net.Listen("tcp", ":0")
		if err != nil {
			return nil, err
		}
		_, port, err := net.SplitHostPort(ln.Addr().String())
		if err != nil {
			return nil, err
		}
		mine = place{host, port, rand.Text()}
		serveControl(ctx, ln, e.size, mine.Token, l.Limit)
	}
	text, err := json.Marshal(mine)
	if err != nil || len(text) > room {
		return nil, fmt.Errorf("the host's name %q is too long", host)
	}
	all := make([]byte, room*e.size)
	if err := e.AllGather(limited, all, append(text, make([]byte, room-len(text))...)); err != nil {
		return nil, err
	}
	var root place
	if err := json.NewDecoder(bytes.NewReader(all[:room])).Decode(&root); err != nil {
		return nil, err
	}
	at := root.Host
	if at == host {
		at = "127.0.0.1"
	}
	local := 0 // ranks of this machine
	for r := range e.size {
		var p place
		if err := json.NewDecoder(bytes.NewReader(all[r*room:][:room])).Decode(&p); err != nil {
			return nil, err
		}
		if p.Host == host {
			local++
		}
	}
	k, err := dialControl(limited, net.JoinHostPort(at, root.Addr), root.Token, e.rank)
	if err != nil {
		return nil, err
	}
	k.spin = spinFor(local, min(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
	return k, nil
}
