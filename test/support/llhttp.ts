import { createRequire } from 'node:module'

/** llhttp, the parser of node and undici, strict in everything: the WebAssembly that undici ships, without undici. */

/** What a recipient reads in the bytes of one final response. */
export interface ResponseReading {
  readonly status: number
  /** In their order: names in lower case, values without the blanks around them. */
  readonly lines: readonly (readonly [name: string, value: string])[]
  /** Latin-1. */
  readonly body: string
  /** How many bytes it is long, interim responses before it included. */
  readonly end: number
  /** Whether the connection may carry another request. */
  readonly reusable: boolean
}

/** What node has and TypeScript tells only of browsers. */
interface WebAssemblyNamespace {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object, imports: object) => { readonly exports: object }
}
const { Module, Instance } = Reflect.get(globalThis, 'WebAssembly') as WebAssemblyNamespace

interface LlhttpExports {
  readonly memory: { readonly buffer: ArrayBuffer }
  _initialize(): void
  malloc(size: number): number
  llhttp_alloc(type: number): number
  llhttp_reset(parser: number): void
  llhttp_execute(parser: number, bytes: number, length: number): number
  llhttp_finish(parser: number): number
  llhttp_should_keep_alive(parser: number): number
  llhttp_get_error_pos(parser: number): number
  llhttp_get_error_reason(parser: number): number
}

const OK = 0
const PAUSED = 21
const RESPONSE = 2
/** What `wasm_on_headers_complete` answers where no body follows. */
const NO_BODY = 1
/** Bytes of one call of `llhttp_execute`. */
const ROOM = 64 * 1024

interface Message {
  requested: string
  status: number
  lines: [string, string][]
  /** Whether the last header callback was for a value: the next name then begins another line. */
  hadValue: boolean
  isHeadComplete: boolean
  body: string
  reusable: boolean
  ended: boolean
}

const newMessage = (requested: string): Message => ({
  requested,
  status: 0,
  lines: [],
  hadValue: true,
  isHeadComplete: false,
  body: '',
  reusable: false,
  ended: false,
})

let message = newMessage('GET')

const text = (at: number, length: number): string =>
  Buffer.from(llhttp.memory.buffer, at, length).toString('latin1')

function onHeaderField(_parser: number, at: number, length: number): number {
  if (message.isHeadComplete) return OK
  if (message.hadValue) message.lines.push(['', ''])
  message.hadValue = false
  message.lines.at(-1)![0] += text(at, length)
  return OK
}

function onHeaderValue(_parser: number, at: number, length: number): number {
  if (message.isHeadComplete) return OK
  message.hadValue = true
  message.lines.at(-1)![1] += text(at, length)
  return OK
}

function onHeadersComplete(_parser: number, status: number): number {
  message.status = status
  message.isHeadComplete = true
  return message.requested === 'HEAD' ? NO_BODY : OK
}

function onMessageComplete(parser: number): number {
  if (message.status < 200) {
    message = newMessage(message.requested)
    return OK
  }
  message.reusable = llhttp.llhttp_should_keep_alive(parser) === 1
  message.ended = true
  return PAUSED
}

const nothing = (): number => OK
const wasm = createRequire(import.meta.url)('undici/lib/llhttp/llhttp-wasm.js') as Uint8Array
const instance = new Instance(new Module(wasm), {
  env: {
    wasm_on_message_begin: nothing,
    wasm_on_url: nothing,
    wasm_on_status: nothing,
    wasm_on_header_field: onHeaderField,
    wasm_on_header_value: onHeaderValue,
    wasm_on_headers_complete: onHeadersComplete,
    wasm_on_body: (_parser: number, at: number, length: number) => {
      message.body += text(at, length)
      return OK
    },
    wasm_on_message_complete: onMessageComplete,
  },
})
const llhttp = instance.exports as LlhttpExports
llhttp._initialize()
const parser = llhttp.llhttp_alloc(RESPONSE)
const room = llhttp.malloc(ROOM)

/**
 * Reads pieces as they would arrive over a connection that then ends. Undefined: llhttp refuses them, or they hold no
 * whole final response.
 * @param requested the method of the request
 */
export function readByLlhttp(pieces: readonly Buffer[], requested: string): ResponseReading | undefined {
  message = newMessage(requested)
  llhttp.llhttp_reset(parser)
  let end = 0
  for (const piece of pieces) {
    new Uint8Array(llhttp.memory.buffer, room, ROOM).set(piece)
    const code = llhttp.llhttp_execute(parser, room, piece.length)
    if (code === PAUSED) return reading(end + llhttp.llhttp_get_error_pos(parser) - room)
    if (code !== OK) return undefined
    end += piece.length
  }
  const code = llhttp.llhttp_finish(parser)
  return (code === OK || code === PAUSED) && message.ended ? reading(end) : undefined
}

const reading = (end: number): ResponseReading => ({
  status: message.status,
  lines: message.lines.map(([name, value]) => [name.toLowerCase(), value.replaceAll(/^[\t ]+|[\t ]+$/g, '')]),
  body: message.body,
  end,
  reusable: message.reusable,
})
