export { b as a } from "../../../outside.ts";
