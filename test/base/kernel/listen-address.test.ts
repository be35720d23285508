import { expect, it } from 'vitest'
import { bindingOf } from '../../../src/base/kernel/listen-address.ts'

it.each([
  ['localhost:8080', '127.0.0.1', 8080],
  ['LocalHost:0', '127.0.0.1', 0],
  ['[::1]:8080', '::1', 8080],
  ['0.0.0.0:80', '0.0.0.0', 80],
])('binds %s as one address', (address, host, port) => {
  expect(bindingOf(address)).toEqual({ host, port })
})
