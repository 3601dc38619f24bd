/**
 * The web console of Device Cloud.
 */

/** Where the console is served. */
export const path = "/console"
