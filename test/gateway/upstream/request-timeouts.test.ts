import { readableOf } from '../../../src/base/http/body/pieces.ts'
import { expect, it } from 'vitest'
import { movableClock } from '../../support/movable-clock.ts'
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
  const clock = movableClock()
  const { call, told } = openConnection(url, { timeouts: { firstByte: LONG }, clock })
  expect(await call().answer).toMatchObject({ statusCode: 200 })
  const timeouts = { connect: LONG, firstByte: SHORT, idle: LONG }
  const { answer } = call({ timeouts })
  await askedAgain
  clock.advance(SHORT - 1)
  expect(told).toEqual(['freed'])
  clock.advance(1)
  await expect(answer).rejects.toMatchObject({ code: 'upstream_timeout' })
})

it('C8.7 a request’s own time between two pieces of the answer holds', async () => {
  const begin = `${OK}Content-Length: 300000\r\n\r\nbegun`
  const url = await rawUpstream((socket) => {
    socket.once('data', () => socket.write(begin))
  })
  const clock = movableClock()
  const { call, told, hasReceived } = openConnection(url, { timeouts: { idle: LONG }, clock })
  const { body } = await call({ timeouts: { connect: LONG, firstByte: LONG, idle: SHORT } }).answer
  if (Buffer.isBuffer(body)) throw new TypeError('expected a stream')
  const pieces = readableOf(body).toArray()
  pieces.catch(() => undefined)
  await hasReceived(begin.length)
  clock.advance(SHORT - 1)
  expect(told).toEqual([])
  clock.advance(1)
  await expect(pieces).rejects.toMatchObject({ code: 'upstream_timeout' })
})
