package devicelock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/loris-ml/loris/internal/devicelock"
)

func ExampleArena_LockDevices() {
	ctx := context.Background()
	arena := devicelock.NewArena(cmp.Compare[string])

	held, err := arena.LockDevices(ctx, "session", "cpu:1", "cpu:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		held.Unlock(&devicelock.Failure{Err: errors.New("out of memory"), Owner: "session"})
	}()

	fmt.Println(arena.Barrier(ctx, "cpu:0")) // waits for the goroutine
	fmt.Println(arena.Barrier(ctx, "cpu:0")) // the error was delivered
	// Output:
	// devicelock: earlier asynchronous work on cpu:0 failed: out of memory
	// <nil>
}
