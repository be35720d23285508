import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { makeAuthority } from '../certificates.ts'
import { makeFolder, nginxProgram } from './files.ts'
import { startProgram } from './programs.ts'
import { record } from './recorder.ts'
import { freePort } from '../free-port.ts'
import type { Service, Surroundings } from './service.ts'

const FUNDS = '{"FundSummaries":[{"Code":"SUPER1","Name":"Harbour View"}],"TotalCount":1}'

/**
 * An nginx that asks for a certificate of the company's own authority, and passes calls on to the service itself. The
 * files that the page names are made in data/tls. What the service gets is recorded behind the nginx.
 */
export async function startMutualTls({ folder, portFor, onRequest }: Surroundings): Promise<Service> {
  const files = join(folder, 'data/tls')
  mkdirSync(files, { recursive: true })
  const authority = makeAuthority(files)
  const own = authority.issue('service', 'DNS:funds.internal,IP:127.0.0.1')
  authority.issue('postern', 'DNS:postern.internal')
  const [shown, recorded, hidden] = [await portFor(9000), await freePort(), await freePort()]
  const recorder = await record(recorded, hidden, onRequest)
  const nginx = await startProgram(
    nginxProgram(
      makeFolder(),
      `server {
        listen 127.0.0.1:${shown} ssl;
        ssl_certificate ${own.certificate};
        ssl_certificate_key ${own.key};
        ssl_client_certificate ${authority.certificate};
        ssl_verify_client on;
        location / {
          proxy_pass http://127.0.0.1:${recorded};
          proxy_http_version 1.1;
          proxy_set_header Connection '';
          proxy_set_header X-Client-Certificate $ssl_client_s_dn;
        }
      }
      server {
        listen 127.0.0.1:${hidden};
        default_type application/json;
        location = /companies/ACME/funds { return 200 '${FUNDS}'; }
      }`,
    ),
    shown,
  )
  return {
    received: () => recorder.requests,
    stop: async () => {
      await nginx.stop()
      await recorder.stop()
    },
  }
}
