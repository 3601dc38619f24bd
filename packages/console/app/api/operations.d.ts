/** Method and path of each operation of each group, made from the definition of the API when the site is built. */
declare module "virtual:operations" {
  const operations: Readonly<Record<string, Readonly<Record<string, string>>>>
  export default operations
}
