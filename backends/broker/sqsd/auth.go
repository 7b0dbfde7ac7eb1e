package sqsd

import (
	"errors"
	"net/http"

	"dlq/backends/broker/sigv4"
)

// authenticate finds out who calls, from which account and for which region, and reports whether
// the call is signed by somebody who is known.
func (c *call) authenticate(body []byte) (signed bool, err error) {
	c.region, c.account = c.s.flavor.region, c.s.flavor.account
	var who sigv4.Credential
	if c.s.Verifier != nil {
		who, err = c.s.Verifier.Verify(c.r, body)
	} else if who, err = sigv4.Parse(c.r); err != nil && !errors.Is(err, sigv4.ErrUnsigned) {
		return false, nil // whatever it says, everybody may call
	}
	switch {
	case errors.Is(err, sigv4.ErrUnsigned) && c.s.Unsigned:
		return false, nil
	case err != nil:
		return false, refused(err)
	}
	c.accessKey = who.AccessKey
	if who.Region != "" {
		c.region = who.Region
	}
	if c.s.Account != nil {
		if account := c.s.Account(who.AccessKey); account != "" {
			c.account = account
		}
	}
	// A page of the web can make a browser get any address, but not send this header. Where
	// signatures are not looked at, those in an address are worth nothing.
	return c.s.Verifier != nil || !who.Presigned, nil
}

// refused says why a signature does not count.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
func refused(err error) *apiError {
	var bad *sigv4.Error
	if !errors.As(err, &bad) {
		return denied("MissingAuthenticationTokenException", "MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	switch bad.Reason {
	case sigv4.UnknownKey:
		return denied("UnrecognizedClientException", "InvalidClientTokenId", "%s", bad.Text)
	case sigv4.Malformed:
		return &apiError{status: http.StatusBadRequest, shape: "IncompleteSignatureException", coral: true, code: "IncompleteSignature", text: bad.Text}
	}
	return denied("InvalidSignatureException", "SignatureDoesNotMatch", "%s", bad.Text)
}
