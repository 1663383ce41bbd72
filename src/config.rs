//! Configuration: a file, the environment and flags become one [`Config`], which is passed on and never global.
