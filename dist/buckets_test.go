package dist

import (
	"os"
	"path/filepath"
	"testing"
)

// A file of measured buckets that is damaged counts as none, and what others have written stays.
func TestBucketFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "buckets.json")
	if err := os.WriteFile(path, []byte("{damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if kept, err := readBuckets(path); err != nil || len(kept) != 0 {
		t.Errorf("%v, %v", kept, err)
	}
	for _, x := range []map[string]int{{"a": 1}, {"b": 2}, {"a": 3}} {
		if err := writeBuckets(path, x); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := readBuckets(path); err != nil || len(kept) != 2 || kept["a"] != 3 || kept["b"] != 2 {
		t.Errorf("%v, %v", kept, err)
	}
}
