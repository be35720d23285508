import { imageRegistry, radicale } from './debian-services.ts'
import { lighttpdWithFiles, nginxByHeader, nginxWithFiles, nginxWithKey, twoServers } from './files.ts'
import { startMutualTls } from './mutual-tls.ts'
import { startGuardedByTokens } from './oauth2.ts'
import { databases, formService, postgrest, searchService } from './own-services.ts'
import { jsonServer, npmService, verdaccio } from './packages.ts'
import { startPrices } from './prices.ts'
import { nodeService, programService, pythonService } from './programs.ts'
import type { Recipe } from './service.ts'
import { startSidecarScene } from './sidecar.ts'
import { startDirectory } from './slapd.ts'

/** Lines of a document of 100,000 bytes. */
const STATEMENT = `%PDF-1.4 ${'statement '.repeat(10_000)}`.slice(0, 100_000)

const MEMBERS = {
  'companies/ACME/funds/SUPER1/members.json':
    '[{"id":7,"name":"Margaret Okafor"},{"id":8,"name":"Daniel Reyes"}]',
  'companies/ACME/funds/SUPER1/members/7.json': '{"id":7,"name":"Margaret Okafor"}',
}

const FUNDS = '[{"code":"SUPER1"},{"code":"SUPER2"}]'

/** The real server of each page of config/recipes, by its name. `npm run recipe NAME` starts it for a reader. */
export const RECIPES: Readonly<Record<string, Recipe>> = {
  files: {
    needs: ['curl', 'lighttpd'],
    start: (where) => programService(where, lighttpdWithFiles({ 'ACME/documents/statement.pdf': STATEMENT })),
  },
  mtls: { needs: ['curl', 'nginx', 'openssl'], start: startMutualTls },
  'server-sent-events': { needs: ['curl', 'python3'], start: pythonService('event-source.py') },
  'sidecar-two-issuers': { needs: ['curl'], start: startSidecarScene },
  'tenant-in-path': {
    needs: ['curl', 'nginx'],
    start: (where) => programService(where, nginxWithFiles(MEMBERS)),
  },
  'users-in-ldap': { needs: ['curl', 'openssl', 'slapd'], start: startDirectory },
  'users-in-sql': { needs: ['curl'] },
  xml: { needs: ['curl', 'python3'], start: pythonService('funds-in-xml.py') },
  websocket: { needs: ['curl'], start: startPrices },
  soap: { needs: ['curl', 'servers of npm'], start: npmService('soap') },
  'json-rpc': { needs: ['curl', 'servers of npm'], start: npmService('jsonRpc') },
  'form-and-text': { needs: ['curl'], start: formService },
  'x-amz-json': { needs: ['curl', 'servers of npm'], start: npmService('amazonJson') },
  odata: { needs: ['curl', 'servers of npm'], start: npmService('odata') },
  caldav: { needs: ['curl', 'radicale'], start: (where) => programService(where, radicale) },
  images: { needs: ['curl', 'docker-registry'], start: (where) => programService(where, imageRegistry) },
  couchdb: { needs: ['curl', 'servers of npm'], start: npmService('couchdb') },
  'search-index': { needs: ['curl'], start: searchService },
  postgrest: { needs: ['curl'], start: postgrest },
  s3: { needs: ['curl', 'servers of npm'], start: npmService('s3') },
  'database-a-tenant': { needs: ['curl'], start: databases },
  'server-a-tenant': { needs: ['curl', 'nginx'], start: twoServers },
  'api-key': {
    needs: ['curl', 'nginx'],
    start: (where) =>
      programService(where, nginxWithKey({ 'v1/ACME/funds': FUNDS }, 'X-API-Key', 'key-of-the-example')),
  },
  oauth2: { needs: ['curl'], start: startGuardedByTokens },
  registry: {
    needs: ['curl', 'verdaccio'],
    start: async (where) => programService(where, verdaccio('http://127.0.0.1:8080/')),
  },
  'tenant-in-query': {
    needs: ['curl', 'json-server'],
    start: (where) => programService(where, jsonServer),
  },
  'tenant-in-header': {
    needs: ['curl', 'nginx'],
    start: (where) => programService(where, nginxByHeader({ 'ACME/funds.json': FUNDS }, 'X-Company')),
  },
  graphql: { needs: ['curl'], start: nodeService('graphql.ts') },
}
