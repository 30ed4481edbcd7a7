package progress

import (
	"strings"
	"testing"
	"time"
)

func TestBar(t *testing.T) {
	var out strings.Builder
	b := New(&out, 4)
	b.Set("epoch 1", 1)
	b.Set("epoch 1", 2) // too soon
	b.Set("epoch 2", 3)
	b.Clear()
	if n := strings.Count(out.String(), "\r\x1b[K"); n != 3 || !strings.Contains(out.String(), "epoch 2  75% |") || !strings.HasSuffix(out.String(), "\x1b[K") {
		t.Errorf("drawn %d times: %q", n, out.String())
	}
	if got, want := b.text(3*time.Second, 3), "epoch 2  75% |"+strings.Repeat("█", 22)+strings.Repeat(" ", 8)+"| [3s:1s]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := b.text(0, 99); !strings.Contains(got, "100%") {
		t.Error(got)
	}
}
