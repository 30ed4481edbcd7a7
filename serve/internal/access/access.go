// Package access says who may use which part of the server: everybody, those with a
// token, or nobody.
package access

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// Open are the scopes that are open to everybody where nothing else is said: those that
// change nothing.
var Open = []inference.Scope{
	inference.ScopeHealth, inference.ScopeMetadata, inference.ScopeInference, inference.ScopeConfig, inference.ScopeStatistics, inference.ScopeMetrics,
}

// All are all scopes.
var All = append(slices.Clone(Open), inference.ScopeRepository, inference.ScopeLogging, inference.ScopeTrace, inference.ScopeWeights, inference.ScopeProfiling, inference.ScopeSharedMemory)

// Rules are the rules of one server. They are safe for concurrent use.
type Rules struct {
	open  map[inference.Scope]bool
	path  string
	oidc  *issuer // nil for none
	mu    sync.Mutex
	seen  time.Time // of the file
	asked time.Time // when it was looked at
	// By the tokens' digests, so that comparing takes the same time for all.
	tokens map[[sha256.Size]byte][]inference.Scope
}

// New returns rules by which some scopes are open to everybody. Those of a file of tokens
// are open to who has one; it has lines of a token and the scopes, with commas, or
// "all". The same goes for tokens of an issuer. With either, health stays open to
// everybody, but nothing else that open does not name.
func New(open []string, tokenFile string, o OIDC) (*Rules, error) {
	r := &Rules{open: map[inference.Scope]bool{inference.ScopeHealth: true}, path: tokenFile}
	if o != (OIDC{}) {
		var err error
		if r.oidc, err = newIssuer(o); err != nil {
			return nil, err
		}
	}
	if !r.guarded() {
		for _, s := range Open {
			r.open[s] = true
		}
	}
	for _, name := range open {
		s, err := parseScope(name)
		if err != nil {
			return nil, err
		}
		r.open[s] = true
	}
	if tokenFile == "" {
		return r, nil
	}
	return r, r.read(time.Now())
}

// guarded reports whether there are tokens.
func (r *Rules) guarded() bool { return r.path != "" || r.oidc != nil }

func parseScope(name string) (inference.Scope, error) {
	if s := inference.Scope(name); slices.Contains(All, s) {
		return s, nil
	}
	return "", fmt.Errorf("there is no scope %q; there are %v", name, All)
}

// read reads the file of tokens anew if it has changed.
func (r *Rules) read(now time.Time) error {
	r.asked = now
	info, err := os.Stat(r.path)
	if err != nil {
		return err
	}
	if r.tokens != nil && info.ModTime().Equal(r.seen) {
		return nil
	}
	text, err := os.ReadFile(r.path)
	if err != nil {
		return err
	}
	tokens := map[[sha256.Size]byte][]inference.Scope{}
	for n, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		token, list, _ := strings.Cut(line, " ")
		var scopes []inference.Scope
		for name := range strings.SplitSeq(strings.TrimSpace(list), ",") {
			if name = strings.TrimSpace(name); name == "all" {
				scopes = append(scopes, All...)
				continue
			}
			s, err := parseScope(name)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", r.path, n+1, err)
			}
			scopes = append(scopes, s)
		}
		tokens[sha256.Sum256([]byte(token))] = scopes
	}
	r.tokens, r.seen = tokens, info.ModTime()
	return nil
}

// again is how often the file of tokens is looked at.
const again = 5 * time.Second

// Allow returns nil if the sender of a request may use a scope: an *inference.Error of
// the kind Unauthenticated without a known token, and PermissionDenied otherwise.
func (r *Rules) Allow(req *http.Request, s inference.Scope) error {
	if r.open[s] {
		return nil
	}
	if !r.guarded() {
		return inference.Errorf(inference.PermissionDenied, "the scope %s is closed; start the server with --allow %s, or with tokens", s, s)
	}
	token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return inference.Errorf(inference.Unauthenticated, "the scope %s needs a token", s)
	}
	scopes, known := r.fromFile(token)
	if !known && r.oidc != nil {
		var err error
		if scopes, err = r.oidc.scopes(req.Context(), token); err != nil {
			return err
		}
	} else if !known {
		return inference.Errorf(inference.Unauthenticated, "the token is unknown")
	}
	if !slices.Contains(scopes, s) {
		return inference.Errorf(inference.PermissionDenied, "the token is not for the scope %s", s)
	}
	return nil
}

// fromFile returns what a token of the file allows.
func (r *Rules) fromFile(token string) (scopes []inference.Scope, known bool) {
	if r.path == "" {
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.asked) > again {
		_ = r.read(now) // one that cannot be read leaves the tokens as they are
	}
	scopes, known = r.tokens[sha256.Sum256([]byte(token))]
	return scopes, known
}
