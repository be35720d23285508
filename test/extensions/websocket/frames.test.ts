import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { closeFrame, FrameFollower } from '../../../src/extensions/websocket/tunnel.ts'

/** A frame by RFC 6455 §5.2, with a payload of this many bytes. */
function frame(length: number, masked: boolean): Buffer {
  const mask = masked ? 0x80 : 0
  const head =
    length < 126
      ? Buffer.of(0x82, mask | length)
      : length < 65_536
        ? Buffer.of(0x82, mask | 126, length >> 8, length & 0xff)
        : Buffer.concat([Buffer.of(0x82, mask | 127, 0, 0, 0, 0), wide(length)])
  return Buffer.concat([head, Buffer.alloc(masked ? 4 : 0), Buffer.alloc(length, 0x81)])
}

function wide(length: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(length)
  return bytes
}

const LENGTHS = [0, 1, 125, 126, 127, 65_535, 65_536, 70_000]
const frames = fc.array(
  fc.tuple(fc.constantFrom(...LENGTHS), fc.boolean()).map(([length, masked]) => frame(length, masked)),
  { minLength: 1, maxLength: 4 },
)

describe('RFC 6455 §5.2 frames', () => {
  it('C4.16 knows between two frames from within one, whatever pieces they come in', () => {
    fc.assert(
      fc.property(frames, fc.integer({ min: 1, max: 9000 }), (all, piece) => {
        const bytes = Buffer.concat(all)
        const ends = new Set<number>()
        all.reduce((at, { length }) => (ends.add(at + length), at + length), 0)
        const follower = new FrameFollower()
        for (let at = 0; at < bytes.length; at += piece) {
          follower.follow(bytes.subarray(at, at + piece))
          expect(follower.isBetween).toBe(ends.has(Math.min(at + piece, bytes.length)))
        }
      }),
    )
  })

  it.each(LENGTHS)('C4.16 completes a frame of %i bytes, and takes nothing behind it', (length) => {
    const whole = frame(length, true)
    const follower = new FrameFollower()
    follower.follow(whole.subarray(0, 1))
    const rest = Buffer.concat([whole.subarray(1), frame(5, false)])
    expect(follower.complete(rest)).toBe(whole.length - 1)
    expect(follower.isBetween).toBe(true)
    expect(follower.complete(rest)).toBe(0)
  })

  it('C4.16 closes with a code and a reason, unmasked', () => {
    expect(closeFrame(1008, 'no')).toEqual(Buffer.of(0x88, 4, 0x03, 0xf0, 0x6e, 0x6f))
  })
})
