package sqsd

import (
	"net/http"
	"strconv"
)

const (
	contentJSON = "application/x-amz-json-1.0"
	contentXML  = "text/xml"
	namespace   = "http://queue.amazonaws.com/doc/2012-11-05/"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// success is a JSON answer: the members that the action has written, in an object.
func (c *call) success() []byte {
	body := make([]byte, 0, len(c.out.buf)+2)
	body = append(body, '{')
	body = append(body, c.out.buf...)
	return append(body, '}')
}

// wrapped is a Query answer. An action that answers with something has an element for its result,
// even if that is empty: botocore looks for it.
func (c *call) wrapped(id string) []byte {
	if c.asJSON {
		return c.wrappedJSON(id)
	}
	e := encoder{xml: true, buf: make([]byte, 0, len(c.out.buf)+256)}
	e.buf = append(e.buf, `<?xml version="1.0"?><`...)
	e.buf = append(e.buf, c.name...)
	e.buf = append(e.buf, "Response"+c.s.flavor.xmlRoot+">"...)
	switch {
	case c.action.silent:
	case len(c.out.buf) == 0:
		e.empty(c.name + "Result")
	default:
		e.open(c.name + "Result")
		e.buf = append(e.buf, c.out.buf...)
		e.close(c.name + "Result")
	}
	e.open("ResponseMetadata")
	e.str("RequestId", id)
	e.close("ResponseMetadata")
	e.close(c.name + "Response")
	return e.buf
}

// wrappedJSON is a Query answer for a client that asks for JSON.
func (c *call) wrappedJSON(id string) []byte {
	var e encoder
	e.object(func() {
		e.key(c.name + "Response")
		e.object(func() {
			if !c.action.silent {
				e.key(c.name + "Result")
				e.object(func() { e.buf = append(e.buf, c.out.buf...) })
				e.comma = true
			}
			e.key("ResponseMetadata")
			e.object(func() { e.str("RequestId", id) })
		})
	})
	return e.buf
}

// failure is an answer that says what is wrong.
func (c *call) failure(h http.Header, id string, e *apiError) []byte {
	side := "Sender"
	if e.fault() {
		side = "Receiver"
	}
	if c.json {
		h.Set("Content-Type", contentJSON)
		h.Set("X-Amzn-Query-Error", e.code+";"+side)
		var out encoder
		out.object(func() {
			out.str("__type", e.kind())
			out.str("message", e.text)
		})
		return out.buf
	}
	text := e.text
	if e.query != "" {
		text = e.query
	}
	if c.asJSON {
		h.Set("Content-Type", "application/json")
		return errorJSON(e.code, side, text, id)
	}
	h.Set("Content-Type", contentXML)
	return c.s.flavor.errorXML(e.code, side, text, id)
}

// errorJSON is an error of the Query protocol for a client that asks for JSON.
func errorJSON(code, side, text, id string) []byte {
	var e encoder
	e.object(func() {
		e.key("Error")
		e.object(func() {
			e.str("Type", side)
			e.str("Code", code)
			e.str("Message", text)
		})
		e.comma = true
		e.str("RequestId", id)
	})
	return e.buf
}

// errorXML is an error of the Query protocol.
func errorXML(code, side, text, id string) []byte {
	e := encoder{xml: true, buf: []byte(`<?xml version="1.0"?><ErrorResponse xmlns="` + namespace + `">`)}
	e.open("Error")
	e.str("Type", side)
	e.str("Code", code)
	e.str("Message", text)
	e.empty("Detail")
	e.close("Error")
	e.str("RequestId", id)
	e.close("ErrorResponse")
	return e.buf
}

// errorXMLOfYMQ has neither type nor namespace.
func errorXMLOfYMQ(code, _, text, id string) []byte {
	e := encoder{xml: true, buf: []byte(`<?xml version="1.0" encoding="UTF-8"?>`)}
	e.open("ErrorResponse")
	e.open("Error")
	e.str("Message", text)
	e.str("Code", code)
	e.close("Error")
	e.str("RequestId", id)
	e.close("ErrorResponse")
	return e.buf
}
