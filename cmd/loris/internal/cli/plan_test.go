package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/local"
)

// A trace that dist has written is projected, with its sums.
func TestPlan(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	err := local.Run(t.Context(), 2, func(ctx context.Context, g *dist.Group) error {
		s, err := g.Session()
		if err != nil {
			return err
		}
		for range 3 {
			x := s.With().Ones(4096)
			if _, err := g.AllReduce(x.Exp(), dist.Sum).Exp().Float32s(ctx); err != nil {
				return err
			}
		}
		return nil
	}, dist.WithTrace(path))
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	if code := command.Main(t.Context(), NewRoot(Rest{}), []string{"plan", path, "--ranks", "2,1024", "--alpha", "1ms"}, nil, &out, &errOut); code != 0 {
		t.Fatalf("%d: %s", code, errOut.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 || !strings.Contains(lines[0], "ran 3 times") || !strings.HasPrefix(strings.TrimSpace(lines[4]), "1024") || !strings.Contains(lines[4], "1.03") {
		t.Errorf("%s", out.String())
	}
	empty := filepath.Join(t.TempDir(), "empty.json")
	text, err := json.Marshal([]int{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(empty, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"plan", empty}, {"plan", path, "--beta", "0"}, {"plan", path, "--ranks", "0"}, {"plan", path, "--graph", "x"}} {
		if code := command.Main(t.Context(), NewRoot(Rest{}), args, nil, &out, &errOut); code == 0 {
			t.Errorf("%v: no error", args)
		}
	}
}
