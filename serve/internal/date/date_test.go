package date_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/loris-ml/loris/serve/internal/date"
)

func TestText(t *testing.T) {
	var c date.Clock
	for _, wait := range []time.Duration{0, 0, 1100 * time.Millisecond} {
		time.Sleep(wait)
		before := time.Now().Truncate(time.Second)
		got, err := http.ParseTime(c.Text())
		if err != nil {
			t.Fatal(err)
		}
		if got.Before(before) || got.After(time.Now()) {
			t.Errorf("%v, asked after %v", got, before)
		}
	}
}
