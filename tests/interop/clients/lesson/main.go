// The commit log and its fetch protocol with nothing but Go's standard library, written from their descriptions:
//
//	lesson append FILE VALUE...                 append values, print their offsets
//	lesson read FILE OFFSET                     print values from an offset on
//	lesson fetch ADDRESS TOPIC PARTITION OFFSET ask a server for values
//	lesson serve FILE                           print an address, answer one fetch there from the file, end
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
)

func main() {
	var err error
	switch words := os.Args[1:]; words[0] {
	case "append":
		err = appendAll(words[1], words[2:])
	case "read":
		err = printAll(readFrom(words[1], number(words[2])))
	case "fetch":
		err = printAll(fetch(words[1], words[2], uint32(number(words[3])), number(words[4])))
	case "serve":
		err = serveOne(words[1])
	default:
		err = fmt.Errorf("no verb %q", words[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(word string) uint64 {
	value, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func printAll(values [][]byte, err error) error {
	for _, value := range values {
		fmt.Printf("%q\n", value)
	}
	return err
}

func appendAll(path string, values []string) error {
	known, err := readFrom(path, 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	for index, value := range values {
		offset := uint64(len(known) + index)
		record := binary.BigEndian.AppendUint64(nil, offset)
		record = binary.BigEndian.AppendUint32(record, uint32(len(value)))
		if _, err := file.Write(append(record, value...)); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
		fmt.Println(offset)
	}
	return nil
}

// readFrom is a filter over the whole file; a record that is cut is an error, and nothing is returned.
func readFrom(path string, start uint64) ([][]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	reader := bufio.NewReader(file)
	values := [][]byte{}
	for {
		var header [12]byte
		if _, err := io.ReadFull(reader, header[:]); err == io.EOF {
			return values, nil
		} else if err != nil {
			return nil, err
		}
		value := make([]byte, binary.BigEndian.Uint32(header[8:]))
		if _, err := io.ReadFull(reader, value); err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		if binary.BigEndian.Uint64(header[:8]) >= start {
			values = append(values, value)
		}
	}
}

func fetch(address string, topic string, partition uint32, offset uint64) ([][]byte, error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	request := binary.BigEndian.AppendUint16(nil, 2)
	request = binary.BigEndian.AppendUint16(request, uint16(len(topic)))
	request = append(request, topic...)
	request = binary.BigEndian.AppendUint32(request, partition)
	request = binary.BigEndian.AppendUint64(request, offset)
	if _, err := connection.Write(request); err != nil {
		return nil, err
	}
	var count uint32
	if err := binary.Read(connection, binary.BigEndian, &count); err != nil {
		return nil, err
	}
	values := [][]byte{}
	for range int(count) {
		var size uint32
		if err := binary.Read(connection, binary.BigEndian, &size); err != nil {
			return nil, err
		}
		value := make([]byte, size)
		if _, err := io.ReadFull(connection, value); err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	rest, err := io.ReadAll(connection)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes behind the answer", len(rest))
	}
	return values, err
}

func serveOne(path string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	connection, err := listener.Accept()
	if err != nil {
		return err
	}
	defer connection.Close()
	var front struct{ Kind, TopicSize uint16 }
	if err := binary.Read(connection, binary.BigEndian, &front); err != nil {
		return err
	}
	if front.Kind != 2 {
		return fmt.Errorf("no request of type %d", front.Kind)
	}
	if _, err := io.CopyN(io.Discard, connection, int64(front.TopicSize)); err != nil {
		return err
	}
	var place struct {
		Partition uint32
		Offset    uint64
	}
	if err := binary.Read(connection, binary.BigEndian, &place); err != nil {
		return err
	}
	values, err := readFrom(path, place.Offset)
	if err != nil {
		return err
	}
	answer := binary.BigEndian.AppendUint32(nil, uint32(len(values)))
	for _, value := range values {
		answer = binary.BigEndian.AppendUint32(answer, uint32(len(value)))
		answer = append(answer, value...)
	}
	_, err = connection.Write(answer)
	return err
}
