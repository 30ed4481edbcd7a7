package mpi

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A pmi is a server of PMI-1, the protocol by which processes of MPICH and Intel MPI find each other: a
// table of strings and a barrier. Rank 0 serves it where no mpiexec does.
type pmi struct {
	token string
	name  string // of the job, in the names of its shared memory: one of an earlier job must not be found
	size  int

	mu      sync.Mutex
	came    []bool // by rank
	values  map[string]string
	waiting []net.Conn // at the barrier
}

// servePMI serves a job on a listener until ctx ends.
func servePMI(ctx context.Context, ln net.Listener, size int, token string) *pmi {
	p := &pmi{token: token, name: "loris_" + rand.Text(), size: size, came: make([]bool, size), values: map[string]string{}}
	go accept(ctx, ln, maxGreeting, p.serve)
	return p
}

// missing says which ranks have not come.
func (p *pmi) missing() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for r, came := range p.came {
		if !came {
			out = append(out, strconv.Itoa(r))
		}
	}
	if out == nil {
		return "all ranks have come to rank 0"
	}
	return "rank " + strings.Join(out, ", ") + " has not come to rank 0"
}

// greeting is the line with which a process begins, before MPI takes the connection over.
func greeting(token string, rank int) string { return fmt.Sprintf("loris %d %s\n", rank, token) }

func (p *pmi) serve(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxLine)
	if !lines.Scan() || !p.welcome(lines.Text()) {
		return // a stranger
	}
	_ = conn.SetReadDeadline(time.Time{}) // ranks may be at a barrier for long
	for lines.Scan() {
		words := map[string]string{}
		for _, w := range strings.Fields(lines.Text()) {
			key, value, _ := strings.Cut(w, "=")
			words[key] = value
		}
		if !p.answer(conn, words) {
			return
		}
	}
}

// welcome reports whether a greeting is that of a rank.
func (p *pmi) welcome(line string) bool {
	_, rest, _ := strings.Cut(line, " ")
	text, _, _ := strings.Cut(rest, " ")
	rank, err := strconv.Atoi(text)
	if err != nil || rank < 0 || rank >= p.size || subtle.ConstantTimeCompare([]byte(line+"\n"), []byte(greeting(p.token, rank))) != 1 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.came[rank] = true
	return true
}

// answer answers a line; false ends the connection.
func (p *pmi) answer(conn net.Conn, words map[string]string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	reply := ""
	switch words["cmd"] {
	case "init":
		reply = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
	case "get_maxes":
		reply = "cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=1024"
	case "get_appnum":
		reply = "cmd=appnum appnum=0"
	case "get_my_kvsname":
		reply = "cmd=my_kvsname kvsname=" + p.name
	case "get_universe_size":
		reply = fmt.Sprintf("cmd=universe_size size=%d", p.size)
	case "put":
		p.values[words["key"]] = words["value"]
		reply = "cmd=put_result rc=0 msg=success"
	case "get":
		reply = fmt.Sprintf("cmd=get_result rc=-1 msg=key_%s_not_found value=unknown", words["key"])
		if v, ok := p.values[words["key"]]; ok {
			reply = "cmd=get_result rc=0 msg=success value=" + v
		}
	case "barrier_in":
		p.waiting = append(p.waiting, conn)
		if len(p.waiting) < p.size {
			return true
		}
		for _, c := range p.waiting {
			if _, err := fmt.Fprintln(c, "cmd=barrier_out rc=0"); err != nil {
				return c != conn // another's connection ends by itself
			}
		}
		p.waiting = nil
		return true
	case "finalize":
		reply = "cmd=finalize_ack rc=0"
	case "abort":
		return false
	default:
		reply = "cmd=" + words["cmd"] + "_result rc=-1 msg=unknown_command"
	}
	_, err := fmt.Fprintln(conn, reply)
	return err == nil
}
