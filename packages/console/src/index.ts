/**
 * The web console of Device Cloud, as pages beside the management API.
 */
export * as Console from "./Console.ts"
