package ir

import "testing"

func TestRecurrentShapes(t *testing.T) {
	x, h := tensor(F32, 5, 3, 4), tensor(F32, 1, 3, 2)
	w := []Value{tensor(F32, 6, 4), tensor(F32, 6, 2)}
	lstm := []Value{tensor(F32, 8, 4), tensor(F32, 8, 2), tensor(F32, 8), tensor(F32, 8)}
	checkUses(t, []use{
		{op: "gru", args: []any{x, h, w, false, 1, 0.0, false, false, false}, want: "f32[5,3,2] f32[1,3,2]"},
		{op: "gru", args: []any{tensor(F32, 5, 4), tensor(F32, 1, 2), w, false, 1, 0.5, false, false, false}, want: "f32[5,2] f32[1,2]"},
		{op: "lstm", args: []any{tensor(F32, 3, 5, 4), []Value{h, h}, lstm, true, 1, 0.0, true, false, true}, want: "f32[3,5,2] f32[1,3,2] f32[1,3,2]"},
		{op: "lstm", args: []any{x, []Value{h}, lstm, true, 1, 0.0, false, false, false}, err: ErrArg, msg: "cell states"},
		{op: "gru", args: []any{x, h, w, false, 1, 0.5, true, false, false}, err: ErrArg, msg: "dropout"},
		{op: "gru", args: []any{x, h, w, true, 1, 0.0, false, false, false}, err: ErrArg, msg: "4 weights, got 2"},
		{op: "gru", args: []any{x, h, lstm[:2], false, 1, 0.0, false, false, false}, err: ErrShape, msg: "4 features and 2 hidden"},
		{op: "gru", args: []any{x, tensor(F32, 1, 5, 2), w, false, 1, 0.0, false, false, false}, err: ErrShape, msg: "states"},
		{op: "rnn_tanh_cell", args: []any{tensor(F16, 3, 4), tensor(F16, 3, 2), tensor(F16, 2, 4), tensor(F16, 2, 2)}, want: "f16[3,2]"},
		{op: "rnn_relu_cell", args: []any{tensor(F16, 3, 4), tensor(F16, 3, 2), tensor(F16, 2, 4), tensor(F16, 2, 2), tensor(F16, 3)}, err: ErrShape, msg: "bias"},
		{op: "lstm_cell", args: []any{tensor(F32, 3, 4), []Value{tensor(F32, 3, 2), tensor(F32, 3, 2)}, lstm[0], lstm[1]}, want: "f32[3,2] f32[3,2]"},
	})
}
