package inference

// GenerateRequest asks a language model to continue a text.
type GenerateRequest struct {
	Model, Version, ID string
	Text               string
	// MaxTokens bounds what is generated; 0 stands for the server's default.
	MaxTokens int
	// Temperature divides logits before one is drawn; 0 takes the likeliest token. TopK
	// and TopP leave only likely tokens to be drawn; 0 leaves all.
	Temperature float64
	TopK        int
	TopP        float64
	// Seed makes what is drawn the same again; nil for any.
	Seed *uint64
	// Stop are texts before which generation ends.
	Stop []string
	// Echo puts the request's text in front of what is generated.
	Echo bool
}

// GenerateResponse says what was generated.
type GenerateResponse struct {
	Model, Version, ID string
	Text               string
	// FinishReason is "stop" for an end that the model or a text to stop at has made, and
	// "length" where there may be no more tokens.
	FinishReason              string
	InputTokens, OutputTokens int
	Parameters                Parameters
}
