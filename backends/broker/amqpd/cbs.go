package amqpd

import (
	"errors"
	"fmt"
	"time"

	"dlq/backends/broker"
	"dlq/backends/broker/sas"
	"dlq/backends/message"
)

// requester is the connection that a request came over, as the nodes see it.
type requester interface {
	// may returns nil, or the failure for a missing claim on an entity.
	may(entity string, right sas.Rights) error
	// session finds the session that a link of the connection holds, by its id, or by the name
	// of the link where the id is nil.
	session(a broker.Address, id *string, link string) (token message.UUID, sessionID string, ok bool)
	// grant remembers what a token allows.
	grant(c sas.Claim)
}

// putToken answers a request to put a token (AMQP Claims-based Security 1.0, 3.3).
func (s *Server) putToken(c requester, req *message.Message) *message.Message {
	a, _ := parseAddress(property(req, "name"))
	if err := s.accept(c, a, req); err != nil {
		return cbsReply(s.failed(err, path(a)))
	}
	return cbsReply(failure{status: 202, text: "Accepted"})
}

// cbsReply is an answer of $cbs. Its status has to be an int, and on success no condition may
// be there: some peers take that for a failure.
func cbsReply(f failure) *message.Message {
	m := &message.Message{Properties: message.Properties{
		{Name: "status-code", Value: message.Int(f.status)},
		{Name: "status-description", Value: message.String(f.text)},
	}}
	if f.condition != "" {
		m.Properties.Set("error-condition", f.condition)
	}
	return m
}

// accept looks at a token and at the entity that it is for.
func (s *Server) accept(c requester, a broker.Address, req *message.Message) error {
	if operation := property(req, "operation"); operation != "put-token" {
		return failure{400, "amqp:not-allowed", s.suffixed(fmt.Sprintf("$cbs does not know the operation %q.", operation), "$cbs")}
	}
	if !s.unguarded() {
		token, err := bodyText(req)
		if err != nil {
			return failure{400, "amqp:invalid-field", s.suffixed("The body of put-token has to be the token as a string.", "$cbs")}
		}
		claim, err := s.gate.Token(property(req, "type"), token)
		if err != nil {
			return s.tokenFailure(err)
		}
		if !covers(claim, path(a)) {
			return failure{401, "com.microsoft:auth-failed", s.suffixed(
				fmt.Sprintf("InvalidAudience: The token is for '%s', not for '%s'.", claim.Resource, path(a)), path(a))}
		}
		c.grant(claim)
	}
	if a.Name == "" {
		return nil
	}
	_, err := s.entity(a)
	return err
}

// covers reports whether a token says anything about an entity.
func covers(claim sas.Claim, entity string) bool {
	for _, right := range []sas.Rights{sas.Send, sas.Listen, sas.Manage} {
		if claim.Allows(entity, right) {
			return true
		}
	}
	return false
}

// tokenFailure says what is wrong with a token in the words of the service.
func (s *Server) tokenFailure(err error) error {
	f := failure{401, "com.microsoft:auth-failed", "InvalidSignature: The token has an invalid signature."}
	var expired *sas.ExpiredError
	switch {
	case errors.As(err, &expired):
		f.text = fmt.Sprintf("ExpiredToken: The token is expired. Expiration time: %s, Current time: %s.",
			expired.Expires.UTC().Format(time.RFC1123), expired.Now.UTC().Format(time.RFC1123))
	case errors.Is(err, sas.ErrMalformed):
		f.text = "MalformedToken: The token cannot be read: " + err.Error() + "."
	case errors.Is(err, sas.ErrUnknownKey):
		f.text = "InvalidSignature: The token is signed with a key that is not known here."
	case errors.Is(err, sas.ErrBearer):
		f.text = "InvalidSignature: A bearer token cannot be verified here; use a shared access key."
	}
	f.text = s.suffixed(f.text, "$cbs")
	return f
}

// property returns an application property as text; "": it is none.
func property(m *message.Message, name string) string {
	v, _ := m.Properties.Get(name)
	s, _ := text(v)
	return s
}
