import { lighttpdWithFiles } from './files.ts'
import { startMutualTls } from './mutual-tls.ts'
import { startPrices } from './prices.ts'
import { programService, pythonService } from './programs.ts'
import type { Recipe } from './service.ts'

/** Lines of a document of 100,000 bytes. */
const STATEMENT = `%PDF-1.4 ${'statement '.repeat(10_000)}`.slice(0, 100_000)

/** The real server of each page of config/recipes, by its name. `npm run recipe NAME` starts it for a reader. */
export const RECIPES: Readonly<Record<string, Recipe>> = {
  files: {
    needs: ['curl', 'lighttpd'],
    start: (where) => programService(where, lighttpdWithFiles({ 'ACME/documents/statement.pdf': STATEMENT })),
  },
  mtls: { needs: ['curl', 'nginx', 'openssl'], start: startMutualTls },
  'server-sent-events': { needs: ['curl', 'python3'], start: pythonService('event-source.py') },
  websocket: { needs: ['curl'], start: startPrices },
}
