/** The little of oidc-provider that the benchmark uses; the package has no types of its own. */
declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http'

  interface Context {
    path: string
    body: unknown
    readonly query: Readonly<Record<string, string>>
  }
  interface Saved {
    save(): Promise<string>
  }
  interface Grant extends Saved {
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
  }
  export default class Provider {
    constructor(issuer: string, configuration: object)
    readonly Client: { find(id: string): Promise<object> }
    readonly Grant: new (facts: object) => Grant
    readonly AuthorizationCode: new (facts: object) => Saved
    use(middleware: (context: Context, next: () => Promise<void>) => Promise<void>): void
    callback(): RequestListener
  }
}
