package sqsd

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"dlq/backends/broker"
)

// apiError is an error as the service says it. Clients act upon its shape (JSON) or its code
// (Query), and people read the text.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
type apiError struct {
	status int
	shape  string // name of the error in the model of the service, behind "#" in __type
	coral  bool   // it is one that all services of AWS have
	code   string // in the Query protocol and in x-amzn-query-error
	text   string
	query  string // text of the Query protocol where it is another one
}

func (e *apiError) Error() string { return e.text }

// The prefix of most query codes.
const simpleQueue = "AWS.SimpleQueueService."

// fault reports whether it is the server's.
func (e *apiError) fault() bool { return e.status >= http.StatusInternalServerError }

// kind is what __type says.
func (e *apiError) kind() string {
	if e.coral {
		return "com.amazon.coral.service#" + e.shape
	}
	return "com.amazonaws.sqs#" + e.shape
}

// short is the code without its prefix, as in the results of batches.
func (e *apiError) short() string { return strings.TrimPrefix(e.code, simpleQueue) }

func noQueue() *apiError {
	return &apiError{
		status: http.StatusBadRequest, shape: "QueueDoesNotExist", code: simpleQueue + "NonExistentQueue",
		text: "The specified queue does not exist.", query: "The specified queue does not exist for this wsdl version.",
	}
}

// modeled is an error of the model of SQS whose code has the prefix.
func modeled(name, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, shape: name, code: simpleQueue + name, text: fmt.Sprintf(format, args...)}
}

// plain is an error of the model of SQS whose code is its name.
func plain(status int, name, format string, args ...any) *apiError {
	return &apiError{status: status, shape: name, code: name, text: fmt.Sprintf(format, args...)}
}

func invalidParameter(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, shape: "InvalidParameterValueException", coral: true, code: "InvalidParameterValue", text: fmt.Sprintf(format, args...)}
}

// invalidValue says that a parameter has a wrong value.
func invalidValue(value, parameter, reason string) *apiError {
	return invalidParameter("Value %s for parameter %s is invalid. Reason: %s", value, parameter, reason)
}

func missingParameter(name string) *apiError {
	return &apiError{
		status: http.StatusBadRequest, shape: "MissingRequiredParameterException", coral: true, code: "MissingParameter",
		text: fmt.Sprintf("The request must contain the parameter %s.", name),
	}
}

func unknownAttribute(name string) *apiError {
	return plain(http.StatusBadRequest, "InvalidAttributeName", "Unknown Attribute %s.", name)
}

func invalidAttribute(name string) *apiError {
	return plain(http.StatusBadRequest, "InvalidAttributeValue", "Invalid value for the parameter %s.", name)
}

func unknownAction(name string) *apiError {
	e := &apiError{
		status: http.StatusBadRequest, shape: "UnknownOperationException", coral: true, code: "InvalidAction",
		text: fmt.Sprintf("The action %s is not valid for this endpoint.", name),
	}
	return e
}

func malformed(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, shape: "SerializationException", coral: true, code: "MalformedInput", text: fmt.Sprintf(format, args...)}
}

func denied(shape, code, format string, args ...any) *apiError {
	return &apiError{status: http.StatusForbidden, shape: shape, coral: true, code: code, text: fmt.Sprintf(format, args...)}
}

func unsupported(format string, args ...any) *apiError {
	return modeled("UnsupportedOperation", format, args...)
}

func overLimit(format string, args ...any) *apiError {
	return plain(http.StatusForbidden, "OverLimit", format, args...)
}

func noResource(format string, args ...any) *apiError {
	return plain(http.StatusNotFound, "ResourceNotFoundException", format, args...)
}

func throttled() *apiError {
	return plain(http.StatusBadRequest, "RequestThrottled", "The request was denied due to request throttling.")
}

// internal is an error that clients try again on.
func internal(text string) *apiError {
	return &apiError{status: http.StatusInternalServerError, shape: "InternalFailure", coral: true, code: "InternalFailure", text: text}
}

func unavailable(text string) *apiError {
	return &apiError{status: http.StatusServiceUnavailable, shape: "ServiceUnavailable", coral: true, code: "ServiceUnavailable", text: text}
}

// apiErrorOf says an error of the engine in the words of the service.
func apiErrorOf(err error) *apiError {
	var e *apiError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, broker.ErrNoEntity):
		return noQueue()
	case errors.Is(err, broker.ErrInFlight):
		return overLimit("The maximum number of in flight messages is reached.")
	case errors.Is(err, broker.ErrDisabled):
		return denied("AccessDeniedException", "AccessDenied", "%v", err)
	case errors.Is(err, broker.ErrFull), errors.Is(err, broker.ErrQuota):
		return overLimit("%v", err)
	case errors.Is(err, broker.ErrTooLarge), errors.Is(err, broker.ErrInvalid):
		return invalidParameter("%v", err)
	case errors.Is(err, broker.ErrUnsupported):
		return unsupported("%v", err)
	case errors.Is(err, broker.ErrUnavailable), errors.Is(err, broker.ErrUncertain):
		return unavailable(err.Error())
	}
	return internal(err.Error())
}
