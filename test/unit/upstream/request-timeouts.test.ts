import { readableOf } from '../../../src/http/pieces.ts'
import { expect, it } from 'vitest'
import { OK, openConnection, rawUpstream } from '../../support/upstream-connections.ts'

const LONG = 60_000
const SHORT = 20

it('C8.7 a request’s own time to the first byte holds on a connection that served another call', async () => {
  const { promise: askedAgain, resolve: sawSecond } = Promise.withResolvers<string>()
  let asked = 0
  const url = await rawUpstream((socket) => {
    socket.on('data', () => {
      asked += 1
      if (asked === 1) socket.write(`${OK}Content-Length: 0\r\n\r\n`)
      else sawSecond('read')
    })
  })
  const { call } = openConnection(url, { timeouts: { firstByte: LONG } })
  expect(await call().answer).toMatchObject({ statusCode: 200 })
  const timeouts = { connect: LONG, firstByte: SHORT, idle: LONG }
  await expect(call({ timeouts }).answer).rejects.toMatchObject({ code: 'upstream_timeout' })
  // On a busy machine the request reaches the upstream only after its time is over.
  await askedAgain
})

it('C8.7 a request’s own time between two pieces of the answer holds', async () => {
  const url = await rawUpstream((socket) => {
    socket.once('data', () => socket.write(`${OK}Content-Length: 300000\r\n\r\nbegun`))
  })
  const { call } = openConnection(url, { timeouts: { idle: LONG } })
  const { body } = await call({ timeouts: { connect: LONG, firstByte: LONG, idle: SHORT } }).answer
  if (Buffer.isBuffer(body)) throw new TypeError('expected a stream')
  await expect(readableOf(body).toArray()).rejects.toMatchObject({ code: 'upstream_timeout' })
})
