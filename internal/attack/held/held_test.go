package held

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestBack(t *testing.T) {
	before := Now()
	if err := Back(before); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Now().Files == 0 {
		t.Skip("the system does not tell")
	}
	if err := back(before, 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "open files") {
		t.Errorf("a file is open, and back returns %v", err)
	}
}
