import { ownFile, startProgram } from './programs.ts'
import { ownService } from './own-server.ts'
import { untilListening, type Service, type Surroundings } from './service.ts'

const FUNDS = JSON.stringify({ FundSummaries: [{ Code: 'SUPER1', Name: 'Harbour View' }], TotalCount: 1 })

/** A service that trusts whoever reaches it, and two issuers for those who may. */
export async function startSidecarScene(where: Surroundings): Promise<Service> {
  const [staff, partners] = [await where.portFor(9001), await where.portFor(9002)]
  const args = [ownFile('two-issuers.ts'), String(staff), String(partners)]
  const issuers = await startProgram({ command: process.execPath, args }, staff)
  await untilListening(partners, new Promise<never>(() => undefined))
  const service = await ownService(where, (_request, response) =>
    response.setHeader('Content-Type', 'application/json').end(FUNDS),
  )
  return {
    received: () => service.received(),
    stop: async () => {
      await service.stop()
      await issuers.stop()
    },
  }
}
