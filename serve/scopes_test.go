package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/serve/internal/grpcapi"
	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/profiling"
	"github.com/loris-ml/loris/serve/internal/rest"
	"github.com/loris-ml/loris/serve/internal/weightsapi"
)

// everyRoute lists what there is to ask for, over REST, over gRPC and beside them. Those
// of the last kind are the admin's.
func everyRoute() (public, admin []rest.Route) {
	// The page's numbers also need metadata, which all have who have statistics here.
	public = append(rest.Routes(), rest.Route{Method: "GET", Path: "/metrics", Scope: inference.ScopeMetrics},
		rest.Route{Method: "HEAD", Path: "/page/events", Scope: inference.ScopeStatistics},
		rest.Route{Method: "GET", Path: "/page/models/{model}/versions/{version}", Scope: inference.ScopeMetadata})
	for _, r := range weightsapi.Routes() {
		public = append(public, rest.Route{Method: r.Method, Path: strings.Replace(r.Path, "{weights}", "none", 1), Scope: inference.ScopeWeights})
	}
	mux := http.NewServeMux()
	services := grpcapi.Register(nil, grpcapi.Options{})
	weightsapi.Register(mux, services, nil, weightsapi.Options{})
	for _, m := range services.Methods() {
		public = append(public, rest.Route{Method: "GRPC", Path: m.Path, Scope: m.Scope})
	}
	for _, path := range profiling.Paths() {
		admin = append(admin, rest.Route{Method: "GET", Path: path + "?seconds=0.001", Scope: inference.ScopeProfiling})
	}
	return public, admin
}

// guardedServer is a server of a model "m" with its addresses.
type guardedServer struct{ public, admin string }

func startGuarded(t *testing.T, o Options) guardedServer {
	t.Helper()
	o.Mode, o.Load, o.AllowWeightUpdate = ModeExplicit, []string{"m"}, true
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	admin := httptest.NewServer(s.admin)
	t.Cleanup(admin.Close)
	return guardedServer{startServer(t, s).URL, admin.URL}
}

// Every route of every protocol against every kind of sender.
func TestScopes(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("# who\nsecret all\nreader metadata, inference\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	issuer := newTokenIssuer(t)
	closed := startGuarded(t, Options{Models: dir})
	opened := startGuarded(t, Options{Models: dir, Allow: []string{"model-repository", "logging", "trace", "weights", "profiling", "shared-memory"}})
	guarded := startGuarded(t, Options{Models: dir, TokenFile: tokens})
	issued := startGuarded(t, Options{Models: dir, TokenFile: tokens, OIDC: OIDC{Issuer: issuer.URL, Audience: "loris-test"}})
	byDefault := map[inference.Scope]bool{}
	for _, s := range []inference.Scope{"health", "metadata", "inference", "model-config", "statistics", "metrics"} {
		byDefault[s] = true
	}
	senders := []struct {
		who       string
		to        guardedServer
		token     string
		may       func(inference.Scope) bool
		otherwise int
	}{
		{"nobody, closed", closed, "", func(s inference.Scope) bool { return byDefault[s] }, 403},
		{"a token where there are none", closed, "secret", func(s inference.Scope) bool { return byDefault[s] }, 403},
		{"nobody, opened", opened, "", everything, 0},
		{"nobody, guarded", guarded, "", healthOnly, 401},
		{"a wrong token", guarded, "secre", healthOnly, 401},
		{"an issuer's where there is none", guarded, issuer.token(map[string]any{"scope": "loris:all"}), healthOnly, 401},
		{"a token for others", guarded, "reader", reading, 403},
		{"the token", guarded, "secret", everything, 0},
		{"nobody, issued", issued, "", healthOnly, 401},
		{"the token of the file, issued", issued, "secret", everything, 0},
		{"a wrong token, issued", issued, "secre", healthOnly, 401},
		{"an issuer's token for others", issued, issuer.token(map[string]any{"scope": "loris:metadata loris:inference"}), reading, 403},
		{"an issuer's token for nothing", issued, issuer.token(nil), healthOnly, 403},
		{"an issuer's token that has expired", issued, issuer.token(map[string]any{"scope": "loris:all", "exp": 1}), healthOnly, 401},
		{"an issuer's token for all", issued, issuer.token(map[string]any{"scope": "loris:all"}), everything, 0},
	}
	public, admin := everyRoute()
	asked := map[inference.Scope]bool{}
	for _, c := range senders {
		for i, rt := range append(public, admin...) {
			url := c.to.public
			if i >= len(public) {
				url = c.to.admin
			}
			asked[rt.Scope] = true
			want := c.otherwise
			if c.may(rt.Scope) {
				want = 0
			}
			if rt.Scope == "model-repository" && want == 0 {
				continue // changes the server; TestRepository loads and unloads
			}
			code, answer := knock(t, rt, url, c.token)
			if (want == 0 && (code == 401 || code == 403)) || (want != 0 && code != want) {
				t.Errorf("%s, %s %s: %d %s; want %d", c.who, rt.Method, rt.Path, code, answer, want)
			}
		}
	}
	if len(asked) != 12 {
		t.Errorf("%d scopes have routes: %v", len(asked), asked)
	}
}

func everything(inference.Scope) bool   { return true }
func healthOnly(s inference.Scope) bool { return s == inference.ScopeHealth }
func reading(s inference.Scope) bool {
	return s == inference.ScopeHealth || s == inference.ScopeMetadata || s == inference.ScopeInference
}

// knock asks for a route, and returns the status; that of REST for the ones of gRPC that
// the rules of access give.
func knock(t *testing.T, rt rest.Route, url, token string) (int, string) {
	t.Helper()
	path := strings.NewReplacer("{model}", "m", "{version}", "1").Replace(rt.Path)
	header := []string{}
	if token != "" {
		header = []string{"Authorization", "Bearer " + token}
	}
	if rt.Method != "GRPC" {
		body := ""
		if strings.HasSuffix(path, "/infer") {
			body = oneRow
		}
		return ask(t, rt.Method, url+path, body, header...)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader("damaged"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	for _, h := range []http.Header{resp.Header, resp.Trailer} {
		switch h.Get("Grpc-Status") {
		case "16":
			return http.StatusUnauthorized, h.Get("Grpc-Message")
		case "7":
			return http.StatusForbidden, h.Get("Grpc-Message")
		}
	}
	return resp.StatusCode, ""
}
