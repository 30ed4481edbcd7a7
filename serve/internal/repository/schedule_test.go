package repository

import (
	"testing"
	"time"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// Clients send priority and timeout as signed and unsigned numbers and as text.
func TestSchedule(t *testing.T) {
	for _, value := range []any{int64(3), uint64(3), "3"} {
		priority, timeout, err := schedule(inference.Parameters{"priority": value, "timeout": value})
		if priority != 3 || timeout != 3*time.Microsecond || err != nil {
			t.Errorf("%T: %d, %v, %v", value, priority, timeout, err)
		}
	}
	for _, value := range []any{int64(-1), uint64(1 << 63), "x", 1.5, true} {
		if _, _, err := schedule(inference.Parameters{"priority": value}); err == nil {
			t.Errorf("%v was taken", value)
		}
	}
}
