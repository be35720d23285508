import type { JsonObject } from '../http/json-value.ts'
import type { Principal } from './principal.ts'

/** Something that the gateway guards but does not own: userinfo (C6.3.1). */
export interface Resource {
  describe(principal: Principal): Promise<JsonObject>
}
