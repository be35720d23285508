;; The grammar of RFC 8259 over bytes, resumed in the middle of any token. `json-check.ts` copies a piece of a document into
;; the memory, calls `check`, and keeps the record of an open document elsewhere between its pieces. UTF-8 is its caller's.
;;
;; Each state below is a place in the grammar, and in the code of `check`. Zeros are put behind a piece: no state accepts
;; a zero byte, so a document that is read to its end stops there as at a wrong byte, and nothing else asks for the end but
;; numbers, which any byte may follow. `state` is always that to go on with at `at`.
(module
  (memory (export "memory") 1)

  ;; Where the record of a document stands. Its first 32 bytes are named here; the brackets follow.
  (global $STATE i32 (i32.const 0))
  (global $DEPTH i32 (i32.const 4))
  (global $WORD_REST i32 (i32.const 8)) ;; what is to come of `true`, `false`, `null`: a byte each, the next one lowest
  (global $UNIT i32 (i32.const 12)) ;; the value of `\u` so far, below a 1 that its four digits shift to bit 16
  (global $NAME_READ i32 (i32.const 16)) ;; the last name that counts, as far as it is read; see $append
  (global $WITHIN i32 (i32.const 24)) ;; the state after an escape: STRING or NAME
  (global $CLOSED i32 (i32.const 25)) ;; the state after a string: AFTER or COLON
  (global $ENVELOPE i32 (i32.const 26)) ;; 1: it must be an envelope (C2.1)
  (global $IN_ERRORS i32 (i32.const 27)) ;; 1: within the list `Errors`
  (global $ERRORS i32 (i32.const 28)) ;; 1: the last `Errors` is a list of errors, as far as it is read
  (global $DATA i32 (i32.const 29)) ;; 1: the last `Data` is an object
  (global $CODE i32 (i32.const 30)) ;; 1: the last `Code` of this error is a string
  (global $MESSAGE i32 (i32.const 31)) ;; the same of `Message`
  ;; By depth: the byte that closes what is open there. At depth 0 it is 0.
  (global $BRACKETS i32 (i32.const 32))
  (global $MOST_DEPTH i32 (i32.const 10000))
  ;; Where a piece stands, and the most bytes of one: zeros follow it in the memory's 64 KiB.
  (global $PIECE (export "PIECE") i32 (i32.const 10240))
  (global (export "MOST_PIECE") i32 (i32.const 49152))

  ;; The states. A document may end in the first five.
  (global $AFTER i32 (i32.const 0)) ;; a value
  (global $ZERO i32 (i32.const 1)) ;; a zero that begins a number
  (global $WHOLE i32 (i32.const 2)) ;; digits before the point
  (global $FRACTION i32 (i32.const 3))
  (global $EXPONENT i32 (i32.const 4))
  (global $VALUE i32 (i32.const 5)) ;; before a value
  (global $LIST i32 (i32.const 6)) ;; after `[`
  (global $OBJECT i32 (i32.const 7)) ;; after `{`
  (global $KEY i32 (i32.const 8)) ;; before a name
  (global $COLON i32 (i32.const 9)) ;; before a colon
  (global $STRING i32 (i32.const 10)) ;; in a string
  (global $NAME i32 (i32.const 11)) ;; in a name that counts for an envelope
  (global $ESCAPE i32 (i32.const 12)) ;; after a backslash
  (global $HEX i32 (i32.const 13)) ;; in the digits of `\u`
  (global $WORD i32 (i32.const 14)) ;; in `true`, `false`, `null`
  (global $MINUS i32 (i32.const 15)) ;; after it
  (global $POINT i32 (i32.const 16)) ;; after it
  (global $E i32 (i32.const 17)) ;; after it
  (global $SIGN i32 (i32.const 18)) ;; after that of an exponent
  (global $ROOT i32 (i32.const 19)) ;; before an envelope
  (global $TOO_DEEP i32 (i32.const 20)) ;; at a bracket beyond the depth that is allowed

  ;; Makes the record that of a new document.
  (func (export "begin") (param $envelope i32)
    (v128.store (global.get $STATE) (v128.const i64x2 0 0))
    (v128.store (global.get $NAME_READ) (v128.const i64x2 0 0))
    (i32.store8 (global.get $ENVELOPE) (local.get $envelope))
    (i32.store (global.get $STATE) (select (global.get $ROOT) (global.get $VALUE) (local.get $envelope))))

  ;; How many bytes the record has.
  (func (export "recordLength") (result i32)
    (i32.add (i32.add (global.get $BRACKETS) (i32.const 1)) (i32.load (global.get $DEPTH))))

  ;; What the document would be if it ended here, or why it was stopped:
  ;; 0 whole, 1 no JSON, 2 nested too deeply, 3 no envelope.
  (func (export "verdict") (result i32)
    (local $state i32)
    (local.set $state (i32.load (global.get $STATE)))
    (if (i32.eq (local.get $state) (global.get $TOO_DEEP)) (then (return (i32.const 2))))
    (if (i32.eq (local.get $state) (global.get $ROOT)) (then (return (i32.const 3))))
    (if (i32.or (i32.load (global.get $DEPTH)) (i32.gt_u (local.get $state) (global.get $EXPONENT)))
      (then (return (i32.const 1))))
    (select (i32.const 3) (i32.const 0)
      (i32.gt_u (i32.load8_u (global.get $ENVELOPE))
        (i32.and (i32.load8_u (global.get $ERRORS)) (i32.load8_u (global.get $DATA))))))

  (func $isDigit (param $byte i32) (result i32)
    (i32.lt_u (i32.sub (local.get $byte) (i32.const 0x30)) (i32.const 10)))

  ;; The value of a hexadecimal digit; 16 or more for any other byte.
  (func $hexValue (param $byte i32) (result i32)
    (local $letter i32)
    (if (call $isDigit (local.get $byte))
      (then (return (i32.sub (local.get $byte) (i32.const 0x30)))))
    (local.set $letter (i32.sub (i32.or (local.get $byte) (i32.const 0x20)) (i32.const 0x61)))
    (select (i32.add (local.get $letter) (i32.const 10)) (i32.const 16)
      (i32.lt_u (local.get $letter) (i32.const 6))))

  ;; Whether a byte other than `u` may follow a backslash: " \ / b f n r t
  (func $isEscape (param $byte i32) (result i32)
    (local $letter i32)
    (local.set $letter (i32.sub (local.get $byte) (i32.const 0x62)))
    (i32.or
      (i32.and (i32.lt_u (local.get $letter) (i32.const 19))
        (i32.shr_u (i32.const 0x51011) (local.get $letter)))
      (i32.or (i32.eq (local.get $byte) (i32.const 0x22))
        (i32.or (i32.eq (local.get $byte) (i32.const 0x5c)) (i32.eq (local.get $byte) (i32.const 0x2f))))))

  (func $isBlank (param $byte i32) (result i32)
    (i32.or
      (i32.or (i32.eq (local.get $byte) (i32.const 0x20)) (i32.eq (local.get $byte) (i32.const 0x0a)))
      (i32.or (i32.eq (local.get $byte) (i32.const 0x0d)) (i32.eq (local.get $byte) (i32.const 0x09)))))

  ;; The first place from `at` on that holds no blank.
  (func $skipBlanks (param $at i32) (result i32)
    (local $bytes v128) (local $others i32)
    (loop $more
      (local.set $bytes (v128.load (local.get $at)))
      (local.set $others
        (i32.xor (i32.const 0xffff)
          (i8x16.bitmask
            (v128.or
              (v128.or
                (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x20)))
                (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x0a))))
              (v128.or
                (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x0d)))
                (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x09))))))))
      (if (i32.eqz (local.get $others))
        (then (local.set $at (i32.add (local.get $at) (i32.const 16))) (br $more))))
    (i32.add (local.get $at) (i32.ctz (local.get $others))))

  ;; Which of 16 bytes are a quote, a backslash or a control character: a bit each.
  (func $endings (param $bytes v128) (result i32)
    (i8x16.bitmask
      (v128.or
        (v128.or
          (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x22)))
          (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x5c))))
        (i8x16.eq (local.get $bytes) (i8x16.min_u (local.get $bytes) (i8x16.splat (i32.const 0x1f)))))))

  ;; How many of 16 bytes stand before the first of these.
  (func $plainBytes (param $bytes v128) (result i32)
    (i32.ctz (i32.or (i32.const 0x10000) (call $endings (local.get $bytes)))))

  ;; A name and one more byte of it: the first byte highest, and all bits set where it is longer than any that counts.
  (func $append (param $name i64) (param $byte i32) (result i64)
    (select
      (i64.const -1)
      (i64.or (i64.shl (local.get $name) (i64.const 8)) (i64.extend_i32_u (local.get $byte)))
      (i32.wrap_i64 (i64.shr_u (local.get $name) (i64.const 56)))))

  ;; A value begins, at depth 1 to 3 of an envelope: what that says of its shape. The last of a repeated name counts.
  (func $judgeValue (param $depth i32) (param $byte i32) (param $name i64)
    (if (i32.eq (local.get $depth) (i32.const 1))
      (then
        (i32.store8 (global.get $IN_ERRORS) (i32.const 0))
        (if (i64.eq (local.get $name) (i64.const 0x4572726f7273)) ;; Errors
          (then
            (i32.store8 (global.get $IN_ERRORS) (i32.eq (local.get $byte) (i32.const 0x5b)))
            (i32.store8 (global.get $ERRORS) (i32.eq (local.get $byte) (i32.const 0x5b)))))
        (if (i64.eq (local.get $name) (i64.const 0x44617461)) ;; Data
          (then (i32.store8 (global.get $DATA) (i32.eq (local.get $byte) (i32.const 0x7b)))))
        (return)))
    (if (i32.eqz (i32.load8_u (global.get $IN_ERRORS))) (then (return)))
    (if (i32.eq (local.get $depth) (i32.const 2))
      (then
        (if (i32.ne (local.get $byte) (i32.const 0x7b))
          (then (i32.store8 (global.get $ERRORS) (i32.const 0))))
        (i32.store8 (global.get $CODE) (i32.const 0))
        (i32.store8 (global.get $MESSAGE) (i32.const 0))
        (return)))
    (if (i64.eq (local.get $name) (i64.const 0x436f6465)) ;; Code
      (then (i32.store8 (global.get $CODE) (i32.eq (local.get $byte) (i32.const 0x22)))))
    (if (i64.eq (local.get $name) (i64.const 0x4d657373616765)) ;; Message
      (then (i32.store8 (global.get $MESSAGE) (i32.eq (local.get $byte) (i32.const 0x22))))))

  ;; One of `Errors` ends: it must have had both members.
  (func $judgeError
    (i32.store8 (global.get $ERRORS)
      (i32.and (i32.load8_u (global.get $ERRORS))
        (i32.and (i32.load8_u (global.get $CODE)) (i32.load8_u (global.get $MESSAGE))))))

  ;; Checks the next bytes of the document whose record is in the memory.
  ;; Returns the place of the first byte that is wrong; else -1, or -2 if there are bytes that are not ASCII.
  (func (export "check") (param $length i32) (result i32)
    (local $at i32) (local $end i32) (local $byte i32)
    (local $state i32) (local $depth i32) (local $closing i32) (local $envelope i32)
    (local $within i32) (local $closed i32) (local $rest i32) (local $unit i32) (local $name i64)
    (local $bytes v128) (local $seen v128) (local $endings i32)
    (local.set $state (i32.load (global.get $STATE)))
    (local.set $depth (i32.load (global.get $DEPTH)))
    (local.set $closing (i32.load8_u (i32.add (global.get $BRACKETS) (local.get $depth))))
    (local.set $envelope (i32.load8_u (global.get $ENVELOPE)))
    (local.set $within (i32.load8_u (global.get $WITHIN)))
    (local.set $closed (i32.load8_u (global.get $CLOSED)))
    (local.set $rest (i32.load (global.get $WORD_REST)))
    (local.set $unit (i32.load (global.get $UNIT)))
    (local.set $name (i64.load (global.get $NAME_READ)))
    (local.set $at (global.get $PIECE))
    (local.set $end (i32.add (local.get $at) (local.get $length)))
    (v128.store (local.get $end) (v128.const i64x2 0 0))
    (block $stop
      (loop $again
        (block $AFTER (block $EXPONENT (block $SIGN (block $E (block $FRACTION (block $POINT
        (block $ZERO (block $WHOLE (block $MINUS (block $VALUE (block $LIST (block $COLON
        (block $KEY (block $OBJECT (block $NAME (block $STRING (block $ESCAPE (block $HEX
        (block $WORD (block $ROOT
          (br_table $AFTER $ZERO $WHOLE $FRACTION $EXPONENT $VALUE $LIST $OBJECT $KEY $COLON $STRING $NAME
            $ESCAPE $HEX $WORD $MINUS $POINT $E $SIGN $ROOT $stop
            (local.get $state)))

        ;; ROOT
          (local.set $at (call $skipBlanks (local.get $at)))
          (br_if $stop (i32.ne (i32.load8_u (local.get $at)) (i32.const 0x7b)))
          (local.set $state (global.get $VALUE))
          (br $again))

        ;; WORD
          (loop $letter
            (if (local.get $rest)
              (then
                (br_if $stop
                  (i32.ne (i32.load8_u (local.get $at)) (i32.and (local.get $rest) (i32.const 0xff))))
                (local.set $at (i32.add (local.get $at) (i32.const 1)))
                (local.set $rest (i32.shr_u (local.get $rest) (i32.const 8)))
                (br $letter))))
          (local.set $state (global.get $AFTER))
          (br $again))

        ;; HEX
          (loop $digit
            (local.set $byte (call $hexValue (i32.load8_u (local.get $at))))
            (br_if $stop (i32.gt_u (local.get $byte) (i32.const 15)))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (local.set $unit (i32.or (i32.shl (local.get $unit) (i32.const 4)) (local.get $byte)))
            (br_if $digit (i32.lt_u (local.get $unit) (i32.const 0x10000))))
          ;; What is not ASCII, and U+0000, is in no name that counts.
          (local.set $unit (i32.and (local.get $unit) (i32.const 0xffff)))
          (local.set $name
            (select (call $append (local.get $name) (local.get $unit)) (i64.const -1)
              (i32.lt_u (i32.sub (local.get $unit) (i32.const 1)) (i32.const 0x7f))))
          (local.set $state (local.get $within))
          (br $again))

        ;; ESCAPE
          (local.set $byte (i32.load8_u (local.get $at)))
          (if (i32.eq (local.get $byte) (i32.const 0x75)) ;; u
            (then
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (local.set $unit (i32.const 1))
              (local.set $state (global.get $HEX))
              (br $again)))
          (br_if $stop (i32.eqz (i32.and (call $isEscape (local.get $byte)) (i32.const 1))))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (local.set $name (i64.const -1)) ;; none of these is in a name that counts
          (local.set $state (local.get $within))
          (br $again))

        ;; STRING
          (loop $more
            (local.set $bytes (v128.load (local.get $at)))
            (local.set $seen (v128.or (local.get $seen) (local.get $bytes)))
            (local.set $endings (call $endings (local.get $bytes)))
            (if (i32.eqz (local.get $endings))
              (then (local.set $at (i32.add (local.get $at) (i32.const 16))) (br $more))))
          (local.set $at (i32.add (local.get $at) (i32.ctz (local.get $endings))))
          (local.set $byte (i32.load8_u (local.get $at)))
          (if (i32.eq (local.get $byte) (i32.const 0x22)) ;; "
            (then
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (local.set $state (local.get $closed))
              (br $again)))
          (br_if $stop (i32.ne (local.get $byte) (i32.const 0x5c))) ;; \
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (local.set $within (global.get $STRING))
          (local.set $state (global.get $ESCAPE))
          (br $again))

        ;; NAME
          (loop $more
            (local.set $byte (i32.load8_u (local.get $at)))
            (br_if $stop (i32.lt_u (local.get $byte) (i32.const 0x20)))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (if (i32.eq (local.get $byte) (i32.const 0x22)) ;; "
              (then (local.set $state (global.get $COLON)) (br $again)))
            (if (i32.eq (local.get $byte) (i32.const 0x5c)) ;; \
              (then
                (local.set $within (global.get $NAME))
                (local.set $state (global.get $ESCAPE))
                (br $again)))
            (local.set $seen (v128.or (local.get $seen) (i8x16.splat (local.get $byte))))
            (local.set $name (call $append (local.get $name) (local.get $byte)))
            (br $more)))

        ;; OBJECT
          (local.set $byte (i32.load8_u (local.get $at)))
          (if (call $isBlank (local.get $byte))
            (then
              (local.set $at (call $skipBlanks (local.get $at)))
              (local.set $byte (i32.load8_u (local.get $at)))))
          (br_if $AFTER (i32.eq (local.get $byte) (i32.const 0x7d))) ;; }
          (br_if $stop (i32.eqz (local.get $byte)))
          (local.set $state (global.get $KEY)))

        ;; KEY
          (local.set $byte (i32.load8_u (local.get $at)))
          (if (call $isBlank (local.get $byte))
            (then
              (local.set $at (call $skipBlanks (local.get $at)))
              (local.set $byte (i32.load8_u (local.get $at)))))
          (br_if $stop (i32.ne (local.get $byte) (i32.const 0x22))) ;; "
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (if (local.get $envelope)
            (then
              (if (i32.or (i32.eq (local.get $depth) (i32.const 1))
                    (i32.and (i32.eq (local.get $depth) (i32.const 3)) (i32.load8_u (global.get $IN_ERRORS))))
                (then
                  (local.set $name (i64.const 0))
                  (local.set $state (global.get $NAME))
                  (br $again)))))
          ;; Most names are short: without a turn through the table of states.
          (local.set $bytes (v128.load (local.get $at)))
          (local.set $seen (v128.or (local.get $seen) (local.get $bytes)))
          (local.set $at (i32.add (local.get $at) (call $plainBytes (local.get $bytes))))
          (if (i32.ne (i32.load8_u (local.get $at)) (i32.const 0x22))
            (then
              (local.set $closed (global.get $COLON))
              (local.set $state (global.get $STRING))
              (br $again)))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (local.set $state (global.get $COLON)))

        ;; COLON
          (local.set $byte (i32.load8_u (local.get $at)))
          (if (call $isBlank (local.get $byte))
            (then
              (local.set $at (call $skipBlanks (local.get $at)))
              (local.set $byte (i32.load8_u (local.get $at)))))
          (br_if $stop (i32.ne (local.get $byte) (i32.const 0x3a))) ;; :
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (local.set $state (global.get $VALUE))
          (br $VALUE))

        ;; LIST
          (local.set $byte (i32.load8_u (local.get $at)))
          (if (call $isBlank (local.get $byte))
            (then
              (local.set $at (call $skipBlanks (local.get $at)))
              (local.set $byte (i32.load8_u (local.get $at)))))
          (br_if $AFTER (i32.eq (local.get $byte) (i32.const 0x5d))) ;; ]
          (br_if $stop (i32.eqz (local.get $byte)))
          (local.set $state (global.get $VALUE)))

        ;; VALUE
          (local.set $byte (i32.load8_u (local.get $at)))
          (if (call $isBlank (local.get $byte))
            (then
              (local.set $at (call $skipBlanks (local.get $at)))
              (local.set $byte (i32.load8_u (local.get $at)))))
          (if (local.get $envelope)
            (then
              (br_if $stop (i32.eqz (local.get $byte)))
              (if (i32.lt_u (i32.sub (local.get $depth) (i32.const 1)) (i32.const 3))
                (then (call $judgeValue (local.get $depth) (local.get $byte) (local.get $name))))))
          (if (i32.eq (local.get $byte) (i32.const 0x22)) ;; "
            (then
              (local.set $bytes (v128.load (i32.add (local.get $at) (i32.const 1))))
              (local.set $seen (v128.or (local.get $seen) (local.get $bytes)))
              (local.set $at
                (i32.add (i32.add (local.get $at) (i32.const 1)) (call $plainBytes (local.get $bytes))))
              (if (i32.ne (i32.load8_u (local.get $at)) (i32.const 0x22))
                (then
                  (local.set $closed (global.get $AFTER))
                  (local.set $state (global.get $STRING))
                  (br $again)))
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (br $AFTER)))
          (if (i32.eq (i32.or (local.get $byte) (i32.const 0x20)) (i32.const 0x7b)) ;; [ or {
            (then
              (if (i32.eq (local.get $depth) (global.get $MOST_DEPTH))
                (then (local.set $state (global.get $TOO_DEEP)) (br $stop)))
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (local.set $depth (i32.add (local.get $depth) (i32.const 1)))
              (local.set $closing (i32.add (local.get $byte) (i32.const 2)))
              (i32.store8 (i32.add (global.get $BRACKETS) (local.get $depth)) (local.get $closing))
              (local.set $state
                (select (global.get $LIST) (global.get $OBJECT) (i32.eq (local.get $byte) (i32.const 0x5b))))
              (br $again)))
          (if (call $isDigit (local.get $byte))
            (then
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (local.set $state (global.get $ZERO))
              (br_if $ZERO (i32.eq (local.get $byte) (i32.const 0x30)))
              (local.set $state (global.get $WHOLE))
              (br $WHOLE)))
          (if (i32.eq (local.get $byte) (i32.const 0x2d)) ;; -
            (then
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (local.set $state (global.get $MINUS))
              (br $MINUS)))
          ;; The first letter of a word; the others follow as WORD says.
          (local.set $rest
            (select (i32.const 0x657572) ;; rue
              (select (i32.const 0x6c6c75) ;; ull
                (i32.const 0x65736c61) ;; alse
                (i32.eq (local.get $byte) (i32.const 0x6e)))
              (i32.eq (local.get $byte) (i32.const 0x74))))
          (br_if $stop
            (i32.and (i32.ne (local.get $byte) (i32.const 0x74))
              (i32.and (i32.ne (local.get $byte) (i32.const 0x6e)) (i32.ne (local.get $byte) (i32.const 0x66)))))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (local.set $state (global.get $WORD))
          (br $again))

        ;; MINUS
          (local.set $byte (i32.load8_u (local.get $at)))
          (br_if $stop (i32.eqz (call $isDigit (local.get $byte))))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (local.set $state (global.get $ZERO))
          (br_if $ZERO (i32.eq (local.get $byte) (i32.const 0x30)))
          (local.set $state (global.get $WHOLE)))

        ;; WHOLE
          (loop $digit
            (if (call $isDigit (i32.load8_u (local.get $at)))
              (then (local.set $at (i32.add (local.get $at) (i32.const 1))) (br $digit)))))

        ;; ZERO
          (local.set $byte (i32.load8_u (local.get $at)))
          (if (i32.eq (local.get $byte) (i32.const 0x2e)) ;; .
            (then
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (local.set $state (global.get $POINT))
              (br $POINT)))
          (if (i32.eq (i32.or (local.get $byte) (i32.const 0x20)) (i32.const 0x65)) ;; E or e
            (then
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (local.set $state (global.get $E))
              (br $E)))
          (br_if $stop (i32.eq (local.get $at) (local.get $end)))
          (br $AFTER))

        ;; POINT
          (br_if $stop (i32.eqz (call $isDigit (i32.load8_u (local.get $at)))))
          (local.set $state (global.get $FRACTION)))

        ;; FRACTION
          (loop $digit
            (if (call $isDigit (i32.load8_u (local.get $at)))
              (then (local.set $at (i32.add (local.get $at) (i32.const 1))) (br $digit))))
          (if (i32.ne (i32.or (i32.load8_u (local.get $at)) (i32.const 0x20)) (i32.const 0x65)) ;; E or e
            (then
              (br_if $stop (i32.eq (local.get $at) (local.get $end)))
              (br $AFTER)))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (local.set $state (global.get $E)))

        ;; E
          (local.set $byte (i32.load8_u (local.get $at)))
          (if (i32.or (i32.eq (local.get $byte) (i32.const 0x2b)) (i32.eq (local.get $byte) (i32.const 0x2d))) ;; + -
            (then
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (local.set $state (global.get $SIGN)))))

        ;; SIGN
          (br_if $stop (i32.eqz (call $isDigit (i32.load8_u (local.get $at)))))
          (local.set $state (global.get $EXPONENT)))

        ;; EXPONENT
          (loop $digit
            (if (call $isDigit (i32.load8_u (local.get $at)))
              (then (local.set $at (i32.add (local.get $at) (i32.const 1))) (br $digit))))
          (br_if $stop (i32.eq (local.get $at) (local.get $end))))

        ;; AFTER
          (local.set $state (global.get $AFTER))
          (local.set $byte (i32.load8_u (local.get $at)))
          (if (call $isBlank (local.get $byte))
            (then
              (local.set $at (call $skipBlanks (local.get $at)))
              (local.set $byte (i32.load8_u (local.get $at)))))
          (br_if $stop (i32.eqz (local.get $closing))) ;; nothing is open
          (if (i32.eq (local.get $byte) (i32.const 0x2c)) ;; ,
            (then
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (local.set $state
                (select (global.get $VALUE) (global.get $KEY) (i32.eq (local.get $closing) (i32.const 0x5d))))
              (br $again)))
          (br_if $stop (i32.ne (local.get $byte) (local.get $closing)))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (local.set $depth (i32.sub (local.get $depth) (i32.const 1)))
          (local.set $closing (i32.load8_u (i32.add (global.get $BRACKETS) (local.get $depth))))
          (if (local.get $envelope)
            (then
              (if (i32.and (i32.eq (local.get $depth) (i32.const 2)) (i32.load8_u (global.get $IN_ERRORS)))
                (then (call $judgeError)))))
          (br $again)))
    (i32.store (global.get $STATE) (local.get $state))
    (i32.store (global.get $DEPTH) (local.get $depth))
    (i32.store8 (global.get $WITHIN) (local.get $within))
    (i32.store8 (global.get $CLOSED) (local.get $closed))
    (i32.store (global.get $WORD_REST) (local.get $rest))
    (i32.store (global.get $UNIT) (local.get $unit))
    (i64.store (global.get $NAME_READ) (local.get $name))
    (if (i32.ne (local.get $at) (local.get $end))
      (then (return (i32.sub (local.get $at) (global.get $PIECE)))))
    (select (i32.const -2) (i32.const -1) (i8x16.bitmask (local.get $seen)))))
