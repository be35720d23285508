import { expect, it, onTestFinished } from 'vitest'
import { makeCall } from '../../support/calls.ts'
import { openHttpBackend } from '../../support/http-backend.ts'
import { startUpstream } from '../../support/start-upstream.ts'

it('C8.7 an operation that waits for less time than its backend puts no target out by its timeouts', async () => {
  const upstream = await startUpstream(() => undefined)
  const patient = { connect: 2000, firstByte: 10_000, idle: 15_000 }
  const backend = openHttpBackend(upstream.url, {
    timeouts: patient,
    retries: 0,
    ejection: { failures: 1, for: 60_000 },
  })
  onTestFinished(() => backend.close())
  const hasty = backend.withRules({ timeouts: { ...patient, firstByte: 20 } })
  for (let call = 0; call < 3; call++)
    await expect(hasty.answer(makeCall())).rejects.toMatchObject({ code: 'upstream_timeout' })
  expect(backend.healthy()).toBe(true)
})

it('C8.4 a timeout of the backend’s own puts its target out', async () => {
  const upstream = await startUpstream(() => undefined)
  const backend = openHttpBackend(upstream.url, {
    timeouts: { firstByte: 20 },
    retries: 0,
    ejection: { failures: 1, for: 60_000 },
  })
  onTestFinished(() => backend.close())
  const view = backend.withRules({ retries: 0 })
  await expect(view.answer(makeCall())).rejects.toMatchObject({ code: 'upstream_timeout' })
  expect(backend.healthy()).toBe(false)
})
